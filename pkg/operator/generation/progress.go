package generation

import (
	"context"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// Progress is how far the filling of a generation is, in records of the log topic.
type Progress struct {
	Generation int   `json:"generation"`
	Done       int64 `json:"done"`
	Total      int64 `json:"total"`
	PerSecond  int64 `json:"per_second"`
	// Left is the time until the end at this pace, in seconds; -1 while nobody knows.
	Left int64 `json:"left_s"`

	at, since time.Time
	from      int64 // Done at since
}

// Look asks how far a generation is.
func Look(ctx context.Context, db *pg.DB, topic Topic, keeper wire.Config, generation int) (p Progress, err error) {
	at, err := db.StandingOf(ctx, generation)
	if err != nil {
		return p, err
	}
	p = Progress{Generation: generation, Left: -1, at: time.Now()}
	for _, o := range at.Offsets {
		p.Done += o.Next
	}
	for partition := range keeper.LogPartitions {
		_, end, err := topic.Bounds(ctx, wire.LogTopic(keeper.ChainID), partition)
		if err != nil {
			return p, err
		}
		p.Total += end
	}
	return p, nil
}

// Next takes in a later look: the pace is that since the first one.
func (p Progress) Next(now Progress) Progress {
	now.since, now.from, now.Left = p.since, p.from, -1
	if p.since.IsZero() {
		now.since, now.from = now.at, now.Done
	}
	if passed := now.at.Sub(now.since); passed > 0 {
		now.PerSecond = int64(float64(now.Done-now.from) / passed.Seconds())
	}
	if now.PerSecond > 0 {
		now.Left = max(now.Total-now.Done, 0) / now.PerSecond
	}
	return now
}

// Percent is how much is done, of a hundred.
func (p Progress) Percent() int64 { return min(100*p.Done/max(p.Total, 1), 100) }
