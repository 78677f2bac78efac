package txmanager

import (
	"context"
	"fmt"
	"sync/atomic"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// pays is the first stage of every pipeline: a task whose lane may not pay what nodes ask for, or has spent its money,
// waits in the queue, and nothing else is asked about it. With a nonce the one would not be mined, nor would whatever
// is behind it; the other would get none.
type pays struct {
	limits Limits
	market *market
	budget *budget
}

const paysStage = "market"

func (p pays) run(ctx context.Context, t *Task) (Verdict, error) {
	paid, err := p.market.now(ctx)
	if err != nil {
		return Verdict{}, err
	}
	switch lane, fee := t.Job().Kind.Lane(), p.limits.Fee(); {
	case !fee.Pays(lane, txm.EmptyGas, paid):
		return tooDear(lane, fee, paid), nil
	case p.budget.isShort(lane):
		return spentOut(lane), nil
	}
	return Verdict{}, nil
}

// tooDear has a task wait until the market is asked for again.
func tooDear(l job.Lane, fee txm.Policy, m txm.Market) Verdict {
	return Verdict{Kind: Retry, Heads: marketFresh, Shown: true,
		Reason: fmt.Sprintf("nodes ask for %d wei per gas, and the lane %s may pay %d (a transaction %d wei in all)",
			m.Suggested, l, fee.Of(l).Cap, fee.JobCost)}
}

// spentOut has a task wait for its lane's money, for however long that takes: a day's comes back by the hour. Other
// lanes may have some of their own.
func spentOut(l job.Lane) Verdict {
	return Verdict{Kind: Defer, Heads: marketFresh, Shown: true,
		Reason: "the signer has spent what it may in a day (lane " + string(l) + ")"}
}

// waiting is the most urgent lane of the tasks that get no nonce for what is in flight: there is no slot, or nodes
// take no more. The drain sets it; confirm pays what is in flight like it. It is safe for concurrent use.
type waiting struct{ lane atomic.Value }

// set notes the tasks that wait; none, when nothing does.
func (w *waiting) set(tasks []*Task) {
	most := job.Lane("")
	for _, t := range tasks {
		if lane := t.Job().Kind.Lane(); most == "" || txm.Above(lane, most) {
			most = lane
		}
	}
	w.lane.Store(most)
}

// most is the most urgent lane, empty for nothing.
func (w *waiting) most() job.Lane {
	lane, _ := w.lane.Load().(job.Lane)
	return lane
}
