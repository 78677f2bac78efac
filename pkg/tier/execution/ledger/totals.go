package ledger

import (
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Cost is what some transactions cost together.
type Cost struct {
	Count int        `json:"count"`
	Gas   uint64     `json:"gas"`
	Wei   chain.Uint `json:"wei"`
}

// with adds a transaction.
func (p Cost) with(tx Tx) Cost {
	return p.plus(Cost{1, tx.Gas, chain.U64(tx.Gas).Mul(chain.U64(tx.GasPrice))})
}

// plus adds two costs.
func (p Cost) plus(q Cost) Cost { return Cost{p.Count + q.Count, p.Gas + q.Gas, p.Wei.Add(q.Wei)} }

// Sum is the totals of the jobs of one kind.
type Sum struct {
	Kind      job.Kind    `json:"kind"`
	Jobs      int         `json:"jobs"`
	Withdrawn int         `json:"withdrawn"`
	Waiting   int         `json:"waiting"`
	Attempted int         `json:"attempted"`
	ByTier    map[int]int `json:"byTier"` // jobs executed, by the winner's tier; 0 = somebody not in the roster
	Won       Cost        `json:"won"`
	Late      Cost        `json:"late"`  // duplicates: called for a job that was over
	Early     Cost        `json:"early"` // called for a job before it was executed, in vain

	ages map[Clock][]uint32 // ms
}

func (s *Sum) add(r Row, won bool) {
	s.Jobs++
	switch {
	case won:
		s.Won = s.Won.with(*r.Winner)
		s.ByTier[r.Winner.Tier]++
		if r.AgeBy != "" {
			s.ages[r.AgeBy] = append(s.ages[r.AgeBy], uint32(min(r.AgeMs, 1<<32-1)))
		}
	case r.State == Withdrawn:
		s.Withdrawn++
	case r.State == Waiting:
		s.Waiting++
	case r.State == Attempted:
		s.Attempted++
	}
	for _, loser := range r.Losers {
		if loser.Late {
			s.Late = s.Late.with(loser.Tx)
		} else {
			s.Early = s.Early.with(loser.Tx)
		}
	}
}

// Ages is how old jobs were when they were executed: below P50 and P99 stayed half and 99 of 100. Times are in ms.
type Ages struct {
	Count int    `json:"count"`
	P50   uint64 `json:"p50Ms"`
	P99   uint64 `json:"p99Ms"`
	Max   uint64 `json:"maxMs"`
}

// Ages returns the ages by one clock.
func (s *Sum) Ages(by Clock) Ages {
	ages := slices.Sorted(slices.Values(s.ages[by]))
	if len(ages) == 0 {
		return Ages{}
	}
	at := func(percent int) uint64 { return uint64(ages[(len(ages)*percent+99)/100-1]) }
	return Ages{len(ages), at(50), at(99), at(100)}
}

// Totals are the sums over all jobs.
type Totals struct {
	kinds map[job.Kind]*Sum
	// Other are transactions of keepers that were about no job the books can tell: calls through a contract, payments,
	// cancellations of a nonce.
	Other Cost
}

// TotalsOf sums some rows by themselves: a part of what was booked.
func TotalsOf(rows []Row) Totals {
	t := Totals{kinds: map[job.Kind]*Sum{}}
	for _, r := range rows {
		t.add(r, r.Winner != nil)
	}
	return t
}

func (t Totals) add(r Row, won bool) {
	s := t.kinds[r.Kind]
	if s == nil {
		s = &Sum{Kind: r.Kind, ByTier: map[int]int{}, ages: map[Clock][]uint32{}}
		t.kinds[r.Kind] = s
	}
	s.add(r, won)
}

// Kinds returns the sums of the kinds of which there were any, in the order of [job.Kinds].
func (t Totals) Kinds() (sums []*Sum) {
	for _, k := range job.Kinds() {
		if s := t.kinds[k]; s != nil {
			sums = append(sums, s)
		}
	}
	return sums
}

// All is the sum over all kinds.
func (t Totals) All() *Sum {
	all := &Sum{Kind: "all", ByTier: map[int]int{}, ages: map[Clock][]uint32{}}
	for _, s := range t.kinds {
		all.Jobs, all.Withdrawn = all.Jobs+s.Jobs, all.Withdrawn+s.Withdrawn
		all.Waiting, all.Attempted = all.Waiting+s.Waiting, all.Attempted+s.Attempted
		all.Won, all.Late, all.Early = all.Won.plus(s.Won), all.Late.plus(s.Late), all.Early.plus(s.Early)
		for tier, n := range s.ByTier {
			all.ByTier[tier] += n
		}
		for by := range maps.Keys(s.ages) {
			all.ages[by] = append(all.ages[by], s.ages[by]...)
		}
	}
	return all
}
