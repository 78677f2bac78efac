package keeperctl

import (
	"context"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/wire"
)

// sampled is how many of the newest records of a partition say how large a record is.
const sampled = 100

// growth is by how many bytes the log topic and the state have grown within the last day: the topic by its offsets and
// the size of its newest records, and the state, which is folded from it, by the same part of what it is. The other
// topics and the archive forget by their age, and grow no more. It is 0 where the topic is younger than two days: what
// came in then is a history, and no pace.
func (s *session) growth(ctx context.Context) (uint64, error) {
	client, err := s.kafka()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var all, ofTheDay, bytes uint64
	for part := range s.Keeper.LogPartitions {
		p, err := pace(ctx, client, wire.LogTopic(s.Keeper.ChainID), part, time.Now())
		if err != nil || p.young {
			return 0, err
		}
		all, ofTheDay, bytes = all+p.records, ofTheDay+p.ofTheDay, bytes+p.ofTheDay*p.size
	}
	if all == 0 {
		return 0, nil
	}
	db, err := s.database(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	state, err := db.StateBytes(ctx)
	return bytes + state*ofTheDay/all, err
}

// partitionPace is how a partition grows.
type partitionPace struct {
	records, ofTheDay uint64
	size              uint64 // bytes of a record, as the newest are
	young             bool   // it has no record of the day before the last one
}

func pace(ctx context.Context, client *bus.Client, topic string, part int, now time.Time) (p partitionPace, err error) {
	first, end, err := client.Bounds(ctx, topic, part)
	if err != nil || first == end {
		return partitionPace{young: true}, err
	}
	before, err := client.OffsetAt(ctx, topic, part, now.Add(-48*time.Hour))
	if err != nil || before == first {
		return partitionPace{young: true}, err
	}
	since, err := client.OffsetAt(ctx, topic, part, now.Add(-24*time.Hour))
	if err != nil {
		return p, err
	}
	p.records, p.ofTheDay = uint64(end-first), uint64(end-since)
	records, err := client.Reader(topic, part, max(first, end-sampled)).NextBatch(ctx, sampled)
	for _, r := range records {
		p.size += uint64(len(r.Key) + len(r.Value))
	}
	p.size /= max(1, uint64(len(records)))
	return p, err
}
