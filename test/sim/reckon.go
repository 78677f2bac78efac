package sim

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/perp"
	"perpkeeper/test/sim/venue"
)

// reckon reads off the branch that stayed what became of every job.
func (s *stage) reckon() Play {
	p := Play{Seed: s.seed, Alerts: s.alerts, Transcript: s.transcript.lines}
	fates := make([]Fate, len(s.works)+1)
	for n := range fates {
		fates[n] = s.begun(n)
	}
	for number := uint64(0); ; number++ {
		ref, known := s.chain.Block(number)
		if !known {
			break
		}
		s.count(&p, fates, ref)
	}
	if strays := fates[0].Losers + fates[0].Reverts + s.strays; strays > 0 {
		p.Broken = append(p.Broken, fmt.Sprintf("keepers told %d times of jobs that nobody made", strays))
	}
	p.Fates = fates[1:]
	return p
}

// begun is the fate of a work before anything was done about it.
func (s *stage) begun(n int) Fate {
	if n == 0 {
		return Fate{}
	}
	w, r := s.works[n-1], s.records[n]
	f := Fate{Name: w.name(), Kind: w.kind, Poison: w.poison != venue.Wholesome, Born: w.due, Sent: r.sent,
		Outcomes: r.outcomes, Told: r.told}
	if w.due == 0 {
		f.Born = w.placed
		switch row := s.chain.Get(perp.RowKey{Table: w.table(), Key: s.keys[n]}).(type) {
		case perp.Order:
			f.Born = since(row.Birth.TimeMs)
		case perp.Request:
			f.Born = since(row.Birth.TimeMs)
		}
	}
	return f
}

// count adds a block's transactions to the fates of the jobs that they were for.
func (s *stage) count(p *Play, fates []Fate, ref chain.BlockRef) {
	for _, e := range s.chain.Ended(ref.Hash) {
		f := &fates[s.numbers[e.Key]]
		if e.Result != execution.Executed && e.Result != execution.Liquidated {
			continue
		}
		if f.Done() {
			p.Broken = append(p.Broken, fmt.Sprintf("%s was executed twice, at last in block %d", f.Name, ref.Number))
		}
		if since(ref.TimeMs) < f.Born {
			p.Broken = append(p.Broken, fmt.Sprintf("%s was executed in block %d, before it was due", f.Name,
				ref.Number))
		}
		f.Executor, f.Age, f.Gas = s.tierOf(e.Tx.From), since(ref.TimeMs)-f.Born, e.Tx.GasUsed
	}
	for _, sent := range s.chain.Sent(ref.Hash) {
		f := &fates[s.numbers[sent.Key]]
		switch {
		case sent.Kind == "" || sent.Tx.OK:
		case f.Done():
			f.Losers++
			f.LostGas += sent.Tx.GasUsed
		default:
			f.Reverts++
			f.LostGas += sent.Tx.GasUsed
		}
	}
}
