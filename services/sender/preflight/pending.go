package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
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
// or two. Nor is it one while the state stands below what is final. An error is no answer (TIER-5).
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
	case again.Progress.Finalized().Number < found:
		return terms{}, notYet(v, fmt.Sprintf("block %d, in which the job was found, is not final yet", found)), nil
	case !again.Progress.HasView(): // a topic that lost its end takes final blocks back for a moment
		return terms{}, notYet(v, "the state has gone back below what is final"), nil
	}
	return p.look(ctx, again, j) // the first look may have been at a branch that is not the final one
}

// notYet has a job wait that cannot be judged by the state as it stands.
func notYet(v txmanager.Verdict, why string) txmanager.Verdict {
	return txmanager.Verdict{Kind: txmanager.Retry, Reason: v.Reason + ", and " + why, Heads: 1}
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
	if err != nil || v.Kind != txmanager.Proceed {
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

// openOrder asks whether the order is there as it was when the job that executes it was found.
func (p pending) openOrder(read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
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
	return terms{}, txmanager.Verdict{}, nil
}

func (p pending) order(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	if t, v, err := p.openOrder(read, j); err != nil || v.Kind != txmanager.Proceed {
		return t, v, err
	}
	row := read.Orders[j.Key].Row
	position, orders, err := p.ofOrder(ctx, read, row)
	if err != nil {
		return terms{}, txmanager.Verdict{}, err
	}
	t := terms{window: perp.OrderWindow(row, position, 0), first: row.OrderType.IsMarket(),
		work: gmx.OrderWork(row, orders), markets: row.SwapPath}
	if t.first {
		t.window.To = j.ExpiresMs / 1000
	}
	v, err := p.disabled(ctx, read, append([]chain.Address{row.Market}, row.SwapPath...))
	return t, v, err
}

// disabled has a job wait while a market that its execution touches is disabled: the venue would cancel what cannot
// wait by itself, and freeze the rest. A swap order has no market but those of its path.
func (p pending) disabled(ctx context.Context, read pg.Rows, markets []chain.Address) (txmanager.Verdict, error) {
	var unread pg.Keys
	for _, market := range markets {
		if _, is := read.Parameters[perp.DisabledKey(market)]; !is && !market.IsZero() {
			unread.Parameters = append(unread.Parameters, perp.DisabledKey(market))
		}
	}
	var more pg.Rows
	if len(unread.Parameters) > 0 {
		var err error
		if more, err = p.state.Look(ctx, unread); err != nil {
			return txmanager.Verdict{}, fmt.Errorf("asking whether markets are disabled: %w", err)
		}
	}
	for _, market := range markets {
		key := perp.DisabledKey(market)
		if read.Parameters[key].Row.Value != (chain.Hash{}) || more.Parameters[key].Row.Value != (chain.Hash{}) {
			return notNow(fmt.Sprintf("market %s is disabled", market)), nil
		}
	}
	return txmanager.Verdict{}, nil
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

// openRequest asks whether the request is there.
func openRequest(read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	found := read.Requests[j.Key]
	switch {
	case !found.Known:
		return absent("there is no such request")
	case !found.Row.Status.Pending():
		return terms{}, txmanager.End(job.SkippedDone, fmt.Sprintf("the request is %s", found.Row.Status)), nil
	}
	return terms{}, txmanager.Verdict{}, nil
}

// cancel is pending while what expired is there. Of orders only those expire that do not wait for a price: the venue
// would let a keeper cancel any other at any time.
func (p pending) cancel(_ context.Context, read pg.Rows, j job.Job) (t terms, v txmanager.Verdict, err error) {
	var work gmx.Work
	if of, _ := j.Kind.Cancels(); of == job.Order {
		row := read.Orders[j.Key].Row
		j.ID = string(of) + strings.TrimPrefix(j.ID, string(j.Kind))
		if t, v, err = p.openOrder(read, j); v.Kind == txmanager.Proceed && !row.OrderType.IsMarket() {
			v = txmanager.End(job.Refused, fmt.Sprintf("a %v order never expires", row.OrderType))
		}
		work = gmx.OrderWork(row, nil)
	} else {
		t, v, err = openRequest(read, j)
		work = gmx.RequestWork(read.Requests[j.Key].Row, 0)
	}
	t.work = gmx.Work{Kind: j.Kind, Callback: work.Callback}
	return t, v, err
}

func (p pending) request(ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error) {
	if t, v, err := openRequest(read, j); err != nil || v.Kind != txmanager.Proceed {
		return t, v, err
	}
	row := read.Requests[j.Key].Row
	window := perp.RequestWindow(row, 0)
	window.To = j.ExpiresMs / 1000
	v, err := p.disabled(ctx, read, append([]chain.Address{row.Market}, row.OtherMarkets()...))
	return terms{window: window, first: true, work: gmx.RequestWork(row, p.markets(row.Glv())),
		markets: row.OtherMarkets()}, v, err
}
