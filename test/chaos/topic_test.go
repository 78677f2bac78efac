package chaos

import (
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// letters are the records of the dead letter topic.
func (r *rig) letters() (letters []bus.Record) {
	r.t.Helper()
	return r.records(wire.DeadLetterTopic(r.chainID), 0)
}

// records reads a partition from its beginning to where it ends now.
func (r *rig) records(topic string, partition int) (all []bus.Record) {
	r.t.Helper()
	first, end, err := r.kafka.Bounds(r.t.Context(), topic, partition)
	if err != nil {
		r.t.Fatal(err)
	}
	reader := r.kafka.Reader(topic, partition, first)
	for reader.Offset() < end {
		some, err := reader.NextBatch(r.t.Context(), int(end-reader.Offset()))
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}
