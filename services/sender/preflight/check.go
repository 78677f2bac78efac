package preflight

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Checker looks again, immediately before the claim (LIQ-7, TIER-14): is the job still pending in our own state, do
// fresh reports fit it, and would the venue do it now. The last question is asked of the contracts themselves, by a
// simulated call with the reports that would be sent: no formula of ours is as exact, and a condition that no longer
// holds is one of its answers. It is also the [txmanager.Judge] of what was mined.
type Checker struct {
	Parts
	pending pending
	audits  *audits
	venue   *gmx.Follower
	gas     *gasLimits
	lags    *lags
	from    chain.Address
	// second asks other endpoints before a job is held back for one's answer.
	second *secondCalls
}

// Stage is the checker as a stage of the pipeline.
func (r *Checker) Stage() txmanager.Stage { return txmanager.Stage{Name: "recheck", Run: r.Run} }

// Recheck looks again at a job that has its nonce, behind the gate.
func (r *Checker) Recheck(ctx context.Context, t *txmanager.Task) (txmanager.Verdict, error) {
	if v, err := r.Gate.recheck(ctx, t.Job()); err != nil || v.Kind != txmanager.Proceed {
		return v, err
	}
	return r.Run(ctx, t)
}

// Close ends what is still being asked in the background.
func (r *Checker) Close() {
	r.second.close()
}

// Run looks at a task again, and sets its call if it is to go on.
func (r *Checker) Run(ctx context.Context, t *txmanager.Task) (txmanager.Verdict, error) {
	j := t.Job()
	head, _ := r.Head.Newest()
	stands := kindRules[j.Kind].standsMs
	switch {
	case j.ExpiresMs > 0 && head.TimeMs > j.ExpiresMs:
		return txmanager.End(job.Expired, "the venue takes no reports for it any more"), nil
	case stands > 0 && head.TimeMs > j.Evidence.Block.TimeMs+stands:
		return txmanager.End(job.DroppedRecovered, "the planner has not chosen this position again since block "+
			strconv.FormatUint(j.Evidence.Block.Number, 10)), nil
	}
	terms, v, err := r.terms(ctx, t)
	r.noteOwn(t, checklog.Pending, v, err)
	if err != nil || v.Kind != txmanager.Proceed {
		return v, err
	}
	if v, err = r.audits.ask(ctx, j, terms.markets); err != nil || v.Kind != txmanager.Proceed {
		r.noteOwn(t, checklog.Words, v, err)
		return v, err
	}
	var reports []price.Report
	t.Call, reports, v = r.prepare(j, terms, t.Intent.Tries)
	if r.noteReports(t, reports, v); v.Kind != txmanager.Proceed {
		return v, nil
	}
	decided, v, err := r.call(ctx, t)
	r.noteCall(t, decided, v, err)
	return v, err
}

// call asks whether the venue would do it, and sets the gas limit that it was done with.
func (r *Checker) call(ctx context.Context, t *txmanager.Task) (callResult, txmanager.Verdict, error) {
	j, made := t.Job(), t.Call // another endpoint may be asked about it for longer than this takes
	first, err := r.simulate(ctx, r.Node, j, made)
	if err != nil {
		return first, txmanager.Verdict{}, err
	}
	decided := r.second.decide(t.Intent.ID, j.Evidence.Block.Number, first,
		func(ctx context.Context, other simulator) (callResult, error) {
			return r.simulate(ctx, other, j, made)
		})
	t.Call.Gas = decided.gas
	if decided.short {
		r.reportShort(j, decided)
	}
	v := decided.verdict
	if v.Outcome == job.LostRace { // or the node that was asked has not heard of it yet: our own state will tell which
		v = txmanager.Wait("the node says that it is done, and the state does not yet: " + v.Reason)
	}
	if v.Pause > 0 { // a token refuses
		v.Pause = min(max(v.Pause, t.Intent.Waited), mostTokenPause)
	}
	head, _ := r.Head.Newest()
	v = premature(j, v, head.TimeMs)
	if v.Heads > 0 {
		v.Heads = headsToWait(j, t.Intent.Waited)
	}
	return decided, v, nil
}

// terms asks whether a task's job is still to be done, and on which terms.
func (r *Checker) terms(ctx context.Context, t *txmanager.Task) (terms, txmanager.Verdict, error) {
	if read, is := readFor(t); is {
		return r.pending.askRead(ctx, read, t.Job())
	}
	return r.pending.ask(ctx, t.Job())
}

// headsToWait is for how many heads a task is passed over after an answer that decides nothing about its job. What is
// not as urgent as a liquidation is asked about less and less often, so that many of them do not use up what the
// endpoints allow.
func headsToWait(j job.Job, waited time.Duration) uint64 {
	const mostHeads, each = 8, 5 * time.Second
	if j.Kind.Lane() == job.LiquidationLane {
		return 1
	}
	return min(1+uint64(waited/each), mostHeads)
}

// choose finds the reports that a job's terms ask for.
func (r *Checker) choose(j job.Job, terms terms) ([]price.Report, txmanager.Verdict) {
	choose := r.Quotes.Latest
	if terms.first {
		head, _ := r.Head.Newest()
		choose = r.lags.first(r.Quotes, j.Tokens, terms.window.From, head.TimeMs)
	}
	reports, err := price.Set(j.Tokens, choose)
	if err != nil {
		return nil, txmanager.Wait(err.Error())
	}
	for _, report := range reports {
		switch second := r.lags.second(report); {
		case second < terms.window.From:
			return nil,
				txmanager.Wait(fmt.Sprintf("the report of %s is of second %d, the venue wants one from %d on",
					report.Token, second, terms.window.From))
		case !terms.window.Holds(second):
			return nil, txmanager.End(job.Expired,
				fmt.Sprintf("the report of %s is of second %d, the venue wants none after %d", report.Token, second,
					terms.window.To))
		}
	}
	return reports, txmanager.Verdict{}
}

// prepare makes the call that executes a job with the reports its terms ask for; failed attempts came before it.
func (r *Checker) prepare(j job.Job, terms terms, failed uint32) (txmanager.Call, []price.Report,
	txmanager.Verdict) {
	reports, v := r.choose(j, terms)
	if v.Kind != txmanager.Proceed {
		return txmanager.Call{}, nil, v
	}
	venue := r.venue.Venue()
	if missing := venue.Demand(j.Kind); missing != nil {
		return txmanager.Call{}, reports, notNow(missing.Error())
	}
	if role := r.venue.Lacks(r.from, j); role != "" {
		return txmanager.Call{}, reports, notNow(fmt.Sprintf("signer %s does not hold the role %s", r.from, role))
	}
	to, data, err := venue.Call(j, setOf(reports))
	if err != nil {
		return txmanager.Call{}, nil, txmanager.End(job.Refused, err.Error())
	}
	c := txmanager.Call{To: to, Data: data, Gas: r.gas.limit(j, terms.work, failed)}
	if j.Kind == job.Order && !terms.first {
		c.Rehearsal = gmx.SimulateExecuteOrder(j.Key, simulatedOf(reports))
	}
	return c, reports, txmanager.Verdict{}
}

// simulatedOf are reports as a rehearsal takes them.
func simulatedOf(reports []price.Report) (p gmx.SimulatedPrices) {
	for n, r := range reports {
		p.Tokens, p.Prices = append(p.Tokens, r.Token), append(p.Prices, perp.Price{Min: r.Min, Max: r.Max})
		if second := r.Second(); n == 0 {
			p.From, p.To = second, second
		} else {
			p.From, p.To = min(p.From, second), max(p.To, second)
		}
	}
	return p
}

func setOf(reports []price.Report) (set gmx.SetPrices) {
	for _, r := range reports {
		set.Tokens, set.Providers, set.Data = append(set.Tokens, r.Token), append(set.Providers, r.Provider),
			append(set.Data, r.Data)
	}
	return set
}
