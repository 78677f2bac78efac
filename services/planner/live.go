package planner

import (
	"hash/fnv"
	"iter"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// live is the set of jobs that are due, by market. It decides what a pass publishes: a new job at once, all of them at
// sweeps.
type live struct {
	markets map[chain.Address]map[string]job.Job
	lost    bool // it is unknown what of the last publication arrived
	turn    uint32
}

func newLive() *live { return &live{markets: map[chain.Address]map[string]job.Job{}} }

// clear forgets all jobs, and what of them arrived.
func (l *live) clear() { l.markets, l.lost = map[chain.Address]map[string]job.Job{}, false }

// has reports whether a job is due already.
func (l *live) has(j job.Job) bool {
	_, known := l.markets[j.Market][j.ID]
	return known
}

// update replaces the jobs of a market and returns those that are new or born anew, and the ids of those that ended.
// Deleveragings are new with each block: which positions of a side are chosen, and how much of them, is another
// decision whenever anything has changed, and an old one is executed by nobody.
func (l *live) update(market chain.Address, jobs []job.Job) (fresh []job.Job, ended []string) {
	before := l.markets[market]
	now := make(map[string]job.Job, len(jobs))
	for _, j := range jobs {
		if old, known := before[j.ID]; !known || old.DueSinceMs != j.DueSinceMs || j.Kind == job.Adl &&
			old.Evidence.Block != j.Evidence.Block {
			fresh = append(fresh, j)
		}
		now[j.ID] = j
	}
	for id := range before {
		if _, still := now[id]; !still {
			ended = append(ended, id)
		}
	}
	l.markets[market] = now
	if len(now) == 0 {
		delete(l.markets, market)
	}
	return fresh, ended
}

// all returns every job that is due.
func (l *live) all() []job.Job { return l.of(maps.Keys(l.markets)) }

// of returns the jobs of some markets that are due.
func (l *live) of(markets iter.Seq[chain.Address]) (jobs []job.Job) {
	for market := range markets {
		jobs = slices.AppendSeq(jobs, maps.Values(l.markets[market]))
	}
	return jobs
}

// count returns how many jobs of each kind are due.
func (l *live) count() map[job.Kind]int {
	count := map[job.Kind]int{}
	for _, market := range l.markets {
		for _, j := range market {
			count[j.Kind]++
		}
	}
	return count
}

// order sorts jobs by urgency. Equally urgent ones come in an order of their own each time, so that no poison job
// stands before the same others for ever.
func (l *live) order(jobs []job.Job) {
	l.turn++
	slices.SortFunc(jobs, func(a, b job.Job) int {
		alike := a
		alike.ID = b.ID
		switch {
		case a.ID != b.ID && !alike.Before(b) && !b.Before(alike):
			return int(l.lot(a.ID)) - int(l.lot(b.ID))
		case a.Before(b):
			return -1
		}
		return 1
	})
}

func (l *live) lot(id string) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte{byte(l.turn), byte(l.turn >> 8)}) // a hash does not fail
	_, _ = h.Write([]byte(id))
	return uint16(h.Sum32())
}
