package replay

import (
	"context"
	"sort"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/operator/market"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// Reports is the price topic in the order of its records.
type Reports struct {
	all    []price.Report
	tokens map[chain.Address][]int // places of those that were newer than all before them
	places map[string]int          // by id
}

// newReports returns an empty topic.
func newReports() *Reports {
	return &Reports{tokens: map[chain.Address][]int{}, places: map[string]int{}}
}

// ReadReports reads the price topic up to its present end. What nobody can read, planners pass over as well.
func ReadReports(ctx context.Context, client *bus.Client, chainID uint64) (*Reports, error) {
	r := newReports()
	return r, market.Each(ctx, client, chainID, time.UnixMilli(0), r.Add)
}

// Add appends a report.
func (r *Reports) Add(report price.Report) {
	newer := r.tokens[report.Token]
	if n := len(newer); n > 0 && r.all[newer[n-1]].TimeMs >= report.TimeMs {
		return // a planner's board has a newer one, and judges with that
	}
	r.places[report.ID()] = len(r.all)
	r.tokens[report.Token] = append(newer, len(r.all))
	r.all = append(r.all, report)
}

// newest is the newest report of a token in the first n of the topic.
func (r *Reports) newest(n int) func(chain.Address) (due.Quote, bool) {
	return func(token chain.Address) (q due.Quote, known bool) {
		places := r.tokens[token]
		i := sort.SearchInts(places, n)
		if i == 0 {
			return q, false
		}
		report := r.all[places[i-1]]
		q.Min, q.Max, q.TimeMs, q.ID = report.Min, report.Max, report.TimeMs, report.ID()
		return q, true
	}
}

// readings are how many reports of the topic a planner may have read when it decided as a job's evidence says: all that
// the evidence names, and none that is newer of their tokens. The likeliest come first. There is none where the topic
// has not all of the evidence any more.
func (r *Reports) readings(j job.Job) (counts []int) {
	least, most := 0, len(r.all)
	for _, id := range j.Evidence.Reports {
		at, known := r.places[id]
		if !known {
			return nil
		}
		least = max(least, at+1)
		places := r.tokens[r.all[at].Token]
		if next := sort.SearchInts(places, at+1); next < len(places) {
			most = min(most, places[next])
		}
	}
	const tried = 200
	for n := least; n <= most && len(counts) < tried; n++ {
		counts = append(counts, n)
	}
	return counts
}

// until is how many reports are of no later second than a time (ms).
func (r *Reports) until(ms uint64) (n int) {
	for i, report := range r.all {
		if report.TimeMs <= ms {
			n = i + 1
		}
	}
	return n
}
