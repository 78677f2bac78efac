package preflight

import (
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmanager"
)

// pending asks this keeper's own state whether a job is still to be done (TIER-4). Only the chain closes a job, and
// this is how we learn of it.
type pending struct {
	state      looker
	frozenRole bool
	// markets counts the markets of a GLV.
	markets func(glv chain.Address) int
}

// terms say which price reports an execution takes, and what it has to do.
type terms struct {
	window perp.Window
	work   gmx.Work
	// first: the first report of the window that is not too old for the venue, as every keeper would take it, and not
	// the newest.
	first bool
	// markets are those that the execution swaps in, or moves to, beside the job's own.
	markets []chain.Address
	// absent: what the job was found by is not there, and nothing shows that it has been done since.
	absent bool
}

// ask returns the terms of a job that is pending. A row that is not there is an answer once the block that the job was
// found in is final: until then a reorg may have taken the row along, and the new branch brings it back within a block
// or two. Nor is it one while the state is being corrected. An error is no answer (TIER-5).
func (p pending) ask(ctx context.Context, j job.Job) (terms, txmanager.Verdict, error) {
	read, err := p.state.Look(ctx, keysOf(j))
	if err != nil {
		return terms{}, txmanager.Verdict{}, err
	}
	return p.askRead(ctx, read, j)
}

// askRead is ask, where rows were read a moment ago. What is not there is looked for again.
func (p pending) askRead(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	t, v, err := p.look(ctx, read, j)
	if err != nil || !t.absent {
		return t, v, err
	}
	again, err := p.state.Look(ctx, keysOf(j))
	if err != nil {
		return terms{}, txmanager.Verdict{}, fmt.Errorf("asking what is final: %w", err)
	}
	switch found := j.Evidence.Block.Number; {
	case again.Standing.Finalized().Number < found:
		return terms{}, notYet(v, fmt.Sprintf("block %d, in which the job was found, is not final yet", found)), nil
	case !again.Standing.HasView(): // a correction takes final blocks back for a moment, and rows with them
		return terms{}, notYet(v, "the state is being corrected"), nil
	}
	return p.look(ctx, again, j) // the first look may have been at a branch that is not the final one
}

// notYet has a job wait that cannot be judged by the state as it stands.
func notYet(v txmanager.Verdict, why string) txmanager.Verdict {
	return txmanager.Verdict{Kind: txmanager.Waiting, Reason: v.Reason + ", and " + why, Heads: 1}
}

// absent is the answer of a state that does not have what a job was found by.
func absent(reason string) (terms, txmanager.Verdict, error) {
	return terms{absent: true}, txmanager.End(job.SkippedDone, reason), nil
}

// changed is the answer of a state in which what a job was found by is another than it was. If that has not changed
// since the job was found, it is that of before: a reorg has taken the change along.
func changed(j job.Job, last perp.Stamp, reason string) (terms, txmanager.Verdict, error) {
	if last.Block <= j.Evidence.Block.Number {
		return absent(reason)
	}
	return terms{}, txmanager.End(job.SkippedDone, reason), nil
}

func (p pending) look(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	r, known := ruleOf(j.Kind)
	if !known {
		return terms{}, txmanager.End(job.Refused, fmt.Sprintf("this build does not know the kind %q", j.Kind)), nil
	}
	return r.pending(p, ctx, read, j)
}

func (p pending) position(_ context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	found := read.Positions[j.Key]
	row := found.Row
	switch {
	case !found.Known:
		return absent("there is no such position")
	case row.Status != perp.Active:
		return terms{}, txmanager.End(job.SkippedDone, fmt.Sprintf("the position is %s", row.Status)), nil
	case j.Kind == job.Liquidation && j.ID != job.LiquidationID(row.PositionKey, row.Changes),
		j.Kind == job.Adl && j.ID != job.AdlID(row.PositionKey, row.Changes):
		return changed(j, row.Stamp, "the position has changed: another job stands for it")
	}
	return terms{window: perp.LiquidationWindow(row), work: gmx.ClosingWork(j.Kind, endingWith(read, j.Key))},
		txmanager.Verdict{}, nil
}

// adl is pending while the exchange has the side as to be deleveraged. It takes no reports of before it had it so
// (LATEST_ADL_AT).
func (p pending) adl(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	t, v, err := p.position(ctx, read, j)
	if err != nil || v.Kind != txmanager.Onward {
		return t, v, err
	}
	enabled := read.Values[adlEnabled(j)].Row
	if enabled.Value.Sign() == 0 {
		return changed(j, enabled.Stamp, "the exchange says that the side is not to be deleveraged")
	}
	t.window.From = max(t.window.From, enabled.Stamp.Seconds())
	return t, txmanager.Verdict{}, nil
}

// adlState is pending until the exchange has set anything newer than what the job was found in.
func (p pending) adlState(_ context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	last := read.Values[adlEnabled(j)].Row.Stamp
	if j.ID != job.AdlStateID(j.Market, j.IsLong, last.Block) {
		return changed(j, last, fmt.Sprintf("the exchange said so in block %d", last.Block))
	}
	return terms{window: perp.Window{From: last.Seconds()}, work: gmx.Work{Kind: j.Kind}}, txmanager.Verdict{}, nil
}

func (p pending) order(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	found := read.Orders[j.Key]
	row := found.Row
	switch {
	case !found.Known:
		return absent("there is no such order")
	case !row.Status.Pending() && !(row.Status == perp.Frozen && p.frozenRole):
		return terms{}, txmanager.End(job.SkippedDone, fmt.Sprintf("the order is %s", row.Status)), nil
	case j.ID != job.OrderID(row.Key, row.Changes):
		return changed(j, row.Stamp, "the order has changed: another job stands for it")
	}
	position, orders, err := p.ofOrder(ctx, read, row)
	if err != nil {
		return terms{}, txmanager.Verdict{}, err
	}
	t := terms{window: perp.OrderWindow(row, position, 0), first: row.OrderType.IsMarket(),
		work: gmx.OrderWork(row, orders), markets: row.SwapPath}
	if t.first {
		t.window.To = j.ExpiresMs / 1000
	}
	return t, txmanager.Verdict{}, nil
}

// ofOrder is the position an order acts on, and, of an order that may close it, the orders that end with it. The zero
// position, if there is none, binds nothing. It is looked up where the job has described another.
func (p pending) ofOrder(ctx context.Context, read pg.Rows, o perp.Order) (_ perp.Position, ending []perp.Order,
	err error) {
	key := o.PositionKey()
	if _, is := read.Positions[key]; !is {
		if read, err = p.state.Look(ctx, pg.Keys{Positions: []chain.Hash{key}}); err != nil {
			return perp.Position{}, nil, err
		}
	}
	if !o.OrderType.IsIncrease() && !o.OrderType.IsSwap() {
		ending = endingWith(read, key)
	}
	return read.Positions[key].Row, ending, nil
}

// endingWith are the open orders that end with a position. The rows may be those of several tasks.
func endingWith(read pg.Rows, position chain.Hash) []perp.Order {
	return slices.Clone(read.Ending[position])
}

func (p pending) request(_ context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	found := read.Requests[j.Key]
	row := found.Row
	switch {
	case !found.Known:
		return absent("there is no such request")
	case !row.Status.Pending():
		return terms{}, txmanager.End(job.SkippedDone, fmt.Sprintf("the request is %s", row.Status)), nil
	}
	window := perp.RequestWindow(row, 0)
	window.To = j.ExpiresMs / 1000
	return terms{window: window, first: true, work: gmx.RequestWork(row, p.markets(row.Glv())),
		markets: row.OtherMarkets()}, txmanager.Verdict{}, nil
}
