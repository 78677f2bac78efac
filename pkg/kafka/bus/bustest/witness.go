package bustest

import (
	"errors"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// witness is a client that shares nothing with package bus. It looks at the first partition of topics.
type witness struct {
	s      *site
	client *kgo.Client
}

func (s *site) witness(opts ...kgo.Opt) *witness {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.cluster.Brokers...)}, opts...)...)
	s.must(err)
	s.Cleanup(client.Close)
	return &witness{s: s, client: client}
}

// partition is the metadata of one partition.
type partition struct {
	topicID  [16]byte
	leader   *kgo.Broker
	leaderID int32
	replicas []int32
}

func (w *witness) partition(topic string) partition {
	w.s.Helper()
	request := kmsg.NewPtrMetadataRequest()
	name := kmsg.NewMetadataRequestTopic()
	name.Topic = &topic
	request.Topics = append(request.Topics, name)
	answer, err := request.RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Topics[0].ErrorCode))
	for _, p := range answer.Topics[0].Partitions {
		if p.Partition == 0 {
			return partition{topicID: answer.Topics[0].TopicID, leader: w.client.Broker(int(p.Leader)),
				leaderID: p.Leader, replicas: p.Replicas}
		}
	}
	w.s.Fatalf("%s has no partition", topic)
	return partition{}
}

// exists reports whether the brokers know a topic, without naming it to them.
func (w *witness) exists(topic string) bool {
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	for _, t := range answer.Topics {
		if t.Topic != nil && *t.Topic == topic {
			return true
		}
	}
	return false
}

// remove deletes a topic.
func (w *witness) remove(topic string) {
	w.s.Helper()
	request := kmsg.NewPtrDeleteTopicsRequest()
	named := kmsg.NewDeleteTopicsRequestTopic()
	named.Topic = &topic
	request.TopicNames, request.Topics = []string{topic}, append(request.Topics, named)
	answer, err := request.RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Topics[0].ErrorCode))
}

// set changes a setting of a topic, as an operator would.
func (w *witness) set(topic, name, value string) {
	w.s.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = name, &value
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Resources[0].ErrorCode))
}

// values reads a partition from its first offset to its end.
func (w *witness) values(topic string) []string {
	w.s.Helper()
	var values []string
	for _, b := range w.batches(topic) {
		values = append(values, b.values...)
	}
	return values
}

// rawBatch is a batch as it is in the log.
type rawBatch struct {
	kmsg.RecordBatch

	values []string
}

// batches reads the batches of a partition from its first offset to its end. They must not be compressed.
func (w *witness) batches(topic string) []rawBatch {
	w.s.Helper()
	end, at := w.offset(topic, -1), w.offset(topic, -2)
	var all []rawBatch
	for at < end {
		raw := w.fetch(topic, at)
		if len(raw) == 0 {
			w.s.Fatalf("%s: nothing at offset %d, though the end is %d", topic, at, end)
		}
		for len(raw) > 12 {
			var b rawBatch
			w.s.must(b.ReadFrom(raw))
			raw = raw[12+int(b.Length):]
			b.values = w.decode(b.RecordBatch)
			all = append(all, b)
			at = b.FirstOffset + int64(b.LastOffsetDelta) + 1
		}
	}
	return all
}

func (w *witness) decode(b kmsg.RecordBatch) []string {
	var values []string
	raw := b.Records
	for range b.NumRecords {
		var r kmsg.Record
		w.s.must(r.ReadFrom(raw))
		raw = raw[len(r.AppendTo(nil)):]
		values = append(values, string(r.Value))
	}
	return values
}

func (w *witness) fetch(topic string, at int64) []byte {
	w.s.Helper()
	p := w.partition(topic)
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = 0, at, 16<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic, p.topicID, []kmsg.FetchRequestTopicPartition{rp}
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MaxBytes, request.Topics = 100, 16<<20, []kmsg.FetchRequestTopic{t}
	answer, err := request.RequestWith(w.s.ctx, p.leader)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode))
	return answer.Topics[0].Partitions[0].RecordBatches
}

// offset returns the end (-1) or the first offset (-2) of a partition.
func (w *witness) offset(topic string, which int64) int64 {
	w.s.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = 0, which
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ListOffsetsRequestTopicPartition{p}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID, request.Topics = -1, []kmsg.ListOffsetsRequestTopic{t}
	answer, err := request.RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode))
	return answer.Topics[0].Partitions[0].Offset
}

// newProducerID asks for an identity.
func (w *witness) newProducerID() (id int64, epoch int16) {
	w.s.Helper()
	for {
		request := kmsg.NewPtrInitProducerIDRequest()
		request.ProducerID, request.ProducerEpoch = -1, -1
		answer, err := request.RequestWith(w.s.ctx, w.client)
		w.s.must(err)
		if err = kerr.ErrorForCode(answer.ErrorCode); err == nil {
			return answer.ProducerID, answer.ProducerEpoch
		}
		if !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			w.s.Fatal(err)
		}
	}
}

// produce writes values under any identity and sequence, and returns the broker's verdict.
func (w *witness) produce(topic string, id int64, epoch int16, sequence int, values ...string) (base int64,
	verdict error) {
	w.s.Helper()
	p := w.partition(topic)
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = 0, encode(id, epoch, sequence, values)
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, p.topicID, []kmsg.ProduceRequestTopicPartition{rp}
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis, request.Topics = -1, 5000, []kmsg.ProduceRequestTopic{rt}
	answer, err := request.RequestWith(w.s.ctx, p.leader)
	w.s.must(err)
	got := answer.Topics[0].Partitions[0]
	return got.BaseOffset, kerr.ErrorForCode(got.ErrorCode)
}

func encode(id int64, epoch int16, sequence int, values []string) []byte {
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(values) - 1), FirstTimestamp: now,
		MaxTimestamp: now,
		ProducerID:   id, ProducerEpoch: epoch, FirstSequence: int32(sequence), NumRecords: int32(len(values)),
	}
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: []byte(v)}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // with a length of 0, which takes one byte
		b.Records = r.AppendTo(b.Records)
	}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - 12)
	raw = b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// deleteBelow deletes a partition's records below an offset.
func (w *witness) deleteBelow(topic string, offset int64) {
	w.s.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = 0, offset
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.DeleteRecordsRequestTopicPartition{p}
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis, request.Topics = 5000, []kmsg.DeleteRecordsRequestTopic{t}
	answer, err := request.RequestWith(w.s.ctx, w.client)
	w.s.must(err)
	w.s.must(kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode))
}
