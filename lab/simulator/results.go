package simulator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
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

// Play is one run of a scenario: what became of every job.
type Play struct {
	Seed   uint64
	Jobs   []JobResult
	Alerts []Alert
	// Broken are the promises that were broken, whatever the scenario expects: a job was executed twice on the branch
	// that stayed, or before it was due.
	Broken []string
	// Transcript is the play line by line, if it was asked for.
	Transcript []string
	// Length is for how long it was played, and Events how many events it took.
	Length time.Duration
	Events int
}

// JobResult is the result of one job.
type JobResult struct {
	Name   string   // as in the transcript
	Kind   job.Kind // limit orders are a kind of their own
	Poison bool
	// Born is since when the job could be executed, from the beginning of the play.
	Born time.Duration
	// Executor is the tier whose transaction did it, 0 if nobody's did, and Age how old the job was in the block that
	// holds it.
	Executor int
	Age      time.Duration
	// Gas is what the execution took. Losers are the mined transactions that found nothing to do, of any tier, and
	// LostGas is what they took. Reverts are those that failed for another reason.
	Gas, LostGas    uint64
	Losers, Reverts int
	// Sent counts by tier (from 1) the broadcast transactions that were to do the job, each once.
	Sent []int
	// Outcomes are by tier (from 1) how the attempts ended, in their order.
	Outcomes [][]job.Outcome
	// Reported is true when some keeper reported the job as expired or given up.
	Reported bool
}

// Done reports whether the job was executed.
func (f JobResult) Done() bool { return f.Executor != 0 }

// Alert is a warning, or worse, that a keeper logged.
type Alert struct {
	At     time.Duration
	Keeper int
	Text   string
}

// Run plays a scenario once for each of its seeds, as many at a time as there are processors. Transcribe keeps the
// transcripts.
func Run(ctx context.Context, s Scenario, transcribe bool) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	r := Result{Scenario: s, Plays: make([]Play, s.Seeds)}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range r.Plays {
		group.Go(func() (err error) {
			r.Plays[i], err = playSafely(ctx, s, uint64(i+1), transcribe)
			return err
		})
	}
	return r, group.Wait()
}

// playSafely names scenario and seed where a play breaks off: they are all that is needed to see it again.
func playSafely(ctx context.Context, s Scenario, seed uint64, transcribe bool) (p Play, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%v\n%s", value, debug.Stack())
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("playing %s with seed %d: %w", s.Name, seed, err)
		}
	}()
	return newSimulation(s, seed, transcribe).play(ctx)
}
