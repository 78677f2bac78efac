package sender

import (
	"context"
	"fmt"
	"strconv"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// recheck looks again, immediately before the claim (LIQ-7, TIER-14): is the job still pending in our own state, do fresh reports fit it, and would the
// venue do it now. The last question is asked of the contracts themselves, by a simulated call with the reports that would be sent: no formula of ours
// is as exact, and a condition that no longer holds is one of its answers.
type recheck struct {
	pending pending
	horizon *horizon
	quotes  *quotes
	venue   gmx.Config
	gas     Gas
	from    chain.Address
	node    simulator
}

// simulator executes a call on the newest state and forgets it.
type simulator interface {
	Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64, value perp.Uint) error
}

// unsaid is for how long (ms, of chain time) a deleveraging stands that the planner does not say again. It says those that are needed with every block: which
// positions they are changes with whatever is executed, and with every price.
const unsaid = 5000

func (r recheck) run(ctx context.Context, t *task) (verdict, error) {
	j := t.job()
	head, _ := r.horizon.newest()
	switch said := j.Evidence.Block.TimeMs; {
	case j.ExpiresMs > 0 && head.TimeMs > j.ExpiresMs:
		return end(job.Expired, "the venue takes no reports for it any more"), nil
	case j.Kind == job.Adl && head.TimeMs > said+unsaid:
		return end(job.DroppedRecovered, "the planner has not chosen this position again since block "+strconv.FormatUint(j.Evidence.Block.Number, 10)), nil
	}
	terms, v, err := r.pending.ask(ctx, j)
	if err != nil || v.kind != onward {
		return v, err
	}
	if t.call, v = r.prepare(j, terms); v.kind != onward {
		return v, nil
	}
	v, err = r.rehearse(ctx, t.call)
	if v.outcome == job.LostRace { // or the node that was asked has not heard of it yet: our own state will tell which
		v = wait("the node says that it is done, and the state does not yet: " + v.reason)
	}
	return v, err
}

// prepare makes the call that executes a job with the reports its terms ask for.
func (r recheck) prepare(j job.Job, terms terms) (call, verdict) {
	choose := r.quotes.Latest
	if terms.first {
		choose = r.quotes.AtOrAfter(terms.window.From)
	}
	reports, err := price.Set(j.Tokens, choose)
	if err != nil {
		return call{}, wait(err.Error())
	}
	for _, report := range reports {
		switch second := report.Second(); {
		case second < terms.window.From:
			return call{}, wait(fmt.Sprintf("the report of %s is of second %d, the venue wants one from %d on", report.Token, second, terms.window.From))
		case !terms.window.Holds(second):
			return call{}, end(job.Expired, fmt.Sprintf("the report of %s is of second %d, the venue wants none after %d", report.Token, second, terms.window.To))
		}
	}
	to, data, err := r.venue.Call(j, setOf(reports))
	if err != nil {
		return call{}, end(job.Refused, err.Error())
	}
	return call{to: to, data: data, gas: r.gas.of(j.Kind)}, verdict{}
}

func setOf(reports []price.Report) (set gmx.SetPrices) {
	for _, r := range reports {
		set.Tokens, set.Providers, set.Data = append(set.Tokens, r.Token), append(set.Providers, r.Provider), append(set.Data, r.Data)
	}
	return set
}

// rehearse simulates the call. A call that would have the venue cancel or freeze the order succeeds, and is sent: withholding it would lock the user's
// funds until the order expires. One that every node answers with an error of its own, such as that its gas ran out, waits like any other: as a failure it
// would be tried for ever, and before all that is less urgent.
func (r recheck) rehearse(ctx context.Context, c call) (verdict, error) {
	err := r.node.Simulate(ctx, r.from, c.to, c.data, c.gas, perp.Uint{})
	if err == nil {
		return verdict{}, nil
	}
	data, reverted := evm.RevertData(err)
	switch {
	case reverted:
		return foretold(gmx.DecodeRevert(data)), nil
	case evm.Refused(err):
		return wait("no node simulates it: " + err.Error()), nil
	}
	return verdict{}, err
}

// foretold is what a revert of the simulated call means for the job.
func foretold(r gmx.Revert) verdict {
	switch r.Class {
	case gmx.DoneElsewhere:
		return end(job.LostRace, r.Error())
	case gmx.Recovered:
		return end(job.DroppedRecovered, r.Error())
	case gmx.NeedsReport:
		return wait(r.Error())
	case gmx.Expired:
		return end(job.Expired, r.Error())
	default: // more gas, a role, a feature, or a cause we do not know: sending would not mend it
		return end(job.Refused, r.Error())
	}
}
