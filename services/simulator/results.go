package simulator

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/perp"
	"perpkeeper/services/simulator/venue"
)

// results reads off the branch that stayed what became of every job.
func (s *simulation) results() Play {
	p := Play{Seed: s.seed, Alerts: s.alerts, Transcript: s.transcript.lines}
	results := make([]JobResult, len(s.planned)+1)
	for n := range results {
		results[n] = s.initialResult(n)
	}
	for number := uint64(0); ; number++ {
		ref, known := s.chain.Block(number)
		if !known {
			break
		}
		s.count(&p, results, ref)
	}
	if strays := results[0].Losers + results[0].Reverts + s.unknownJobs; strays > 0 {
		p.Broken = append(p.Broken, fmt.Sprintf("keepers reported %d times on jobs that nobody made", strays))
	}
	p.Jobs = results[1:]
	return p
}

// initialResult is the result of a job before anything was done about it.
func (s *simulation) initialResult(n int) JobResult {
	if n == 0 {
		return JobResult{}
	}
	w, r := s.planned[n-1], s.records[n]
	f := JobResult{Name: w.name(), Kind: w.kind, Poison: w.poison != venue.Wholesome, Born: w.due, Sent: r.sent,
		Outcomes: r.outcomes, Reported: r.reported}
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

// count adds a block's transactions to the results of the jobs that they were for.
func (s *simulation) count(p *Play, results []JobResult, ref chain.BlockRef) {
	for _, e := range s.chain.Ended(ref.Hash) {
		f := &results[s.numbers[e.Key]]
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
		f := &results[s.numbers[sent.Key]]
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
