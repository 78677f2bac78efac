package preflight

import (
	"context"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txmanager"
)

// simulator executes a call on the newest state and forgets it. It returns which endpoint reports that it succeeds.
type simulator interface {
	Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64, value chain.Uint) (evm.Source, error)
}

type callResult struct {
	verdict txmanager.Verdict
	gas     uint64     // the limit it was given in the end
	from    evm.Source // whose word it is, where it is one endpoint's
	too     evm.Source // who else says so
	short   bool       // the most gas a transaction may have is not enough
}

// gasTries is how often a call is simulated before its gas limit is ruled out as the cause: as computed, with what
// is reported to be missing, with the most.
const gasTries = 3

// simulate makes a call for nothing, and makes it again at once with more gas while that is what it wants. It returns
// an error where nobody could be asked.
//
// A call that would have the venue cancel or freeze the order succeeds. Where an order cannot wait it is sent:
// withholding it would lock the user's funds until the order expires. Where it can, it is rehearsed as well. A call
// that every node answers with an error of its own waits like any other: as a failure it would be tried for ever, and
// before all that is less urgent.
func (r *Checker) simulate(ctx context.Context, node simulator, j job.Job, c txmanager.Call) (o callResult, err error) {
	o.gas = c.Gas
	for try := 1; ; try++ {
		one, failure := node.Simulate(ctx, r.from, c.To, c.Data, o.gas, chain.Uint{})
		if failure == nil {
			return r.rehearse(ctx, node, c, callResult{gas: o.gas, from: one})
		}
		a, answered := answerIn(failure)
		if !answered {
			return o, failure
		}
		if a.revert.Class == gmx.NeedsRole {
			r.venue.Changed()
		}
		o.verdict = a.verdict()
		o.from, _ = evm.Answered(failure)
		o.short = a.wantsGas && a.knows && o.gas >= gmx.MaxGas
		more := gmx.RaisedLimit(o.gas, a.revert)
		if !a.wantsGas || try == gasTries || more <= o.gas {
			return o, nil
		}
		r.Log.Info().Str("job", j.ID).Uint64("gas", o.gas).Uint64("raised", more).Str("reason", o.verdict.Reason).
			Msg("the simulated call wants more gas")
		o.gas = more
	}
}

// rehearse asks what a call that succeeds would do to an order that may wait: where its terms cannot be met, for want
// of output or at too bad a price, the venue freezes it at its owner's cost. Such an order waits. What the contracts do
// not say in so many words, as those that cannot rehearse, holds nothing back.
func (r *Checker) rehearse(ctx context.Context, node simulator, c txmanager.Call, o callResult) (callResult, error) {
	if c.Rehearsal == nil {
		return o, nil
	}
	_, failure := node.Simulate(ctx, r.from, c.To, c.Rehearsal, o.gas, chain.Uint{})
	if failure == nil {
		return o, nil
	}
	a, answered := answerIn(failure)
	if !answered {
		return o, failure
	}
	switch cause := a.revert; cause.Class { //nolint:exhaustive // for every other the venue would not freeze it
	case gmx.CancelsOrFreezes:
		o.from, _ = evm.Answered(failure)
		o.verdict = odd("sent now, the venue would freeze the order: " + cause.Error())
	case gmx.NotNow, gmx.TokenRefuses:
		o.from, _ = evm.Answered(failure)
		o.verdict = verdictOf(cause)
		o.verdict.Reason = "sent now, the venue would freeze the order: " + o.verdict.Reason
	}
	return o, nil
}

// answer is a node's answer to a call that did not succeed.
type answer struct {
	revert gmx.Revert
	// wantsGas is true when more gas may mend it. A call that the caller's own call took all gas from reverts without a
	// word, and so does many another.
	wantsGas bool
	knows    bool   // it says so itself
	instead  string // what the node said where no contract said anything
}

// answerIn finds a node's answer in an error; there is none where no node was reached.
func answerIn(failure error) (a answer, is bool) {
	data, reverted := evm.RevertData(failure)
	switch {
	case reverted:
		a.revert = gmx.DecodeRevert(data)
		a.knows = a.revert.Class == gmx.NeedsGas
		a.wantsGas = a.knows || len(data) == 0
		return a, true
	case evm.OutOfGas(failure):
		return answer{wantsGas: true, knows: true, instead: "it runs out of gas: " + failure.Error()}, true
	case evm.Refused(failure):
		return answer{instead: "no node simulates it: " + failure.Error()}, true
	}
	return a, false
}

func (a answer) verdict() txmanager.Verdict {
	if a.instead != "" {
		return odd(a.instead)
	}
	return verdictOf(a.revert)
}

// odd is the verdict after an answer that decides nothing about the job: it is asked about again at the next head.
func odd(reason string) txmanager.Verdict {
	return txmanager.Verdict{Kind: txmanager.Retry, Reason: reason, Heads: 1}
}

// notNow is the verdict while the venue takes nothing of the kind. It stands for however long that lasts: no attempt
// ends for it, and none fails. It is asked about again at the next head, and people are told what is in the way.
func notNow(reason string) txmanager.Verdict {
	return txmanager.Verdict{Kind: txmanager.Defer, Reason: reason, Heads: 1, Shown: true}
}

// explained says what the name of an error does not.
var explained = map[string]string{
	"InvalidMinMaxForPrice": ": the venue sets this token's price itself, and exchanges its two sides; until its " +
		"managers set another, nothing with this token is executed",
}

// A token that refuses to be moved is asked again after a pause that doubles: it may be paused for days. The pause
// stays short enough for a liquidation.
const leastTokenPause, mostTokenPause = time.Second, 30 * time.Second

// verdictOf is what a revert of the simulated call means for the job. Only what is known to stand ends an attempt: a
// lack of gas does not, nor does a cause that we do not know, such as a Panic, a revert without a reason, or a text.
func verdictOf(r gmx.Revert) txmanager.Verdict {
	switch r.Class {
	case gmx.DoneElsewhere:
		return txmanager.End(job.LostRace, r.Error())
	case gmx.Recovered:
		v := txmanager.End(job.DroppedRecovered, r.Error())
		v.Premature = isNearly(r) || r.Name == "OrderValidFromTimeNotReached"
		return v
	case gmx.NeedsReport:
		return txmanager.Wait(r.Error())
	case gmx.Expired:
		return txmanager.End(job.Expired, r.Error())
	case gmx.CancelsOrFreezes: // sending would not mend it
		return txmanager.End(job.Refused, r.Error())
	case gmx.NeedsRole: // which has moved, of the handler or of the signer: the venue is looked at again
		return notNow(r.Error())
	case gmx.NotNow:
		return notNow(r.Error() + explained[r.Name])
	case gmx.TokenRefuses:
		v := notNow(r.Error())
		v.Heads, v.Pause = 0, leastTokenPause
		return v
	default:
		return odd(r.Error())
	}
}

// reportShort notifies the operators of a job that wants more gas than a transaction may have, once while it waits.
func (r *Checker) reportShort(j job.Job, o callResult) {
	r.Metrics.gasShort.WithLabelValues(string(j.Kind)).Inc()
	if r.gas.short(j.ID) {
		r.Log.Error().Str("job", j.ID).Uint64("gas", o.gas).Str("reason", o.verdict.Reason).
			Msg("the job wants more gas than a transaction may have; it is tried again at every head")
	}
}
