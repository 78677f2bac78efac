package txmtest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// dearer is another transaction at the same number that pays so much.
func dearer(tx txm.SignedTx, kind txm.TxKind, tip, top uint64) txm.SignedTx {
	raw := fmt.Appendf(nil, "%s after %s for %d, %d", kind, tx.Hash, tip, top)
	return txm.SignedTx{Nonce: tx.Nonce, Gas: txm.EmptyGas, Tip: tip, Cap: top, Hash: sha256.Sum256(raw), Raw: raw}
}

func after(intent int64, before, tx txm.SignedTx, kind txm.TxKind, cancel txm.Verdict) txm.Replacement {
	return txm.Replacement{Intent: intent, After: before.Hash, Kind: kind, Tx: tx, Cancel: cancel}
}

var recovered = txm.Verdict{Outcome: job.DroppedRecovered, Reason: "healthy"}

// NON-13: every raise is stored at the same number, above the newest transaction, before anybody broadcasts it.
func replaced(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	queued := b.queue(anOrder(signer, 1))[0]
	intent, first := queued.ID, n.mustClaim(queued)
	second := dearer(first, txm.Exec, 77, 99)
	b.must(n.Intents.Replace(ctx, n.fence, after(intent, first, second, txm.Exec, txm.Verdict{})))
	f := b.onlyPending(signer, txm.Signed)
	if a := f.Newest(); len(f.Txs) != 2 || a.Hash != second.Hash || string(a.Raw) != string(second.Raw) ||
		a.Seq != 2 || a.Kind != txm.Exec ||
		a.Nonce != first.Nonce {
		b.Errorf("stored %+v", f.Txs)
	}
	for what, r := range map[string]txm.Replacement{
		"from a transaction that is not the newest": after(intent, first, dearer(first, txm.Exec, 90, 120), txm.Exec,
			txm.Verdict{}),
		"with too small a tip": after(intent, second, dearer(first, txm.Exec, 84, 120), txm.Exec, txm.Verdict{}),
		"with too small a cap": after(intent, second, dearer(first, txm.Exec, 90, 108), txm.Exec, txm.Verdict{}),
		"at another number": after(intent, second, txm.SignedTx{Nonce: 7, Tip: 90, Cap: 120, Hash: chain.Hash{9}},
			txm.Exec, txm.Verdict{}),
		"of another intent":      after(intent+1, second, dearer(first, txm.Exec, 90, 120), txm.Exec, txm.Verdict{}),
		"filling what has a job": after(intent, second, dearer(first, txm.Fill, 90, 120), txm.Fill, txm.Verdict{}),
	} {
		b.mustBeRefused("replacing "+what, n.Intents.Replace(ctx, n.fence, r), txm.Moved)
	}
	b.must(n.Intents.Record(ctx, n.fence, minedAt(first, 4, 0))) // the cheaper one was mined all the same
	third := dearer(first, txm.Exec, 90, 120)
	b.mustBeRefused("replacing what was mined",
		n.Intents.Replace(ctx, n.fence, after(intent, second, third, txm.Exec, txm.Verdict{})), txm.Moved)
	b.must(n.Intents.Unmine(ctx, n.fence, minedAt(first, 4, 0)))
	b.must(n.Intents.Replace(ctx, n.fence, after(intent, second, third, txm.Exec, txm.Verdict{})))
	n.land(second)
	if ended := b.ended(signer, 1)[0]; ended.Receipt.TxHash != second.Hash {
		b.Errorf("ended: %+v", ended)
	}
}

// Of several raises that began from the same transaction one is stored.
func raceToReplace(b *bench) {
	n, signer := b.sender()
	queued := b.queue(anOrder(signer, 1))[0]
	intent, first := queued.ID, n.mustClaim(queued)
	var stored atomic.Int32
	var group sync.WaitGroup
	for i := range uint64(6) {
		group.Go(func() {
			err := n.Intents.Replace(b.Context(), n.fence, after(intent, first, dearer(first, txm.Exec, 100+i, 100+i),
				txm.Exec, txm.Verdict{}))
			switch {
			case err == nil:
				stored.Add(1)
			case txm.Refused(err) != txm.Moved:
				b.Error(err)
			}
		})
	}
	group.Wait()
	if f := b.onlyPending(signer, txm.Signed); stored.Load() != 1 || len(f.Txs) != 2 {
		b.Errorf("%d raises were stored, %d transactions", stored.Load(), len(f.Txs))
	}
}

// A job that is given up stays given up: only what frees its nonce is signed from then on, and how the attempt ends was
// said with the first of it.
func cancelled(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	j := aLiquidation(signer, 1, 1)
	queued := b.queue(j)[0]
	intent, first := queued.ID, n.mustClaim(queued)
	second, third := dearer(first, txm.Cancel, 100, 100), dearer(first, txm.Cancel, 200, 200)
	b.must(n.Intents.Replace(ctx, n.fence, after(intent, first, second, txm.Cancel, recovered)))
	again := after(intent, second, dearer(first, txm.Exec, 200, 200), txm.Exec, txm.Verdict{})
	b.mustBeRefused("executing after all", n.Intents.Replace(ctx, n.fence, again), txm.Moved)
	b.must(n.Intents.Replace(ctx, n.fence,
		after(intent, second, third, txm.Cancel, txm.Verdict{Outcome: job.SkippedDone, Reason: "done"})))
	f := b.onlyPending(signer, txm.Signed)
	if !f.Leaving() || f.Intent.Cancel != recovered || len(f.Txs) != 3 {
		b.Errorf("cancelled: %+v", f)
	}
	r := minedAt(third, 4, 0)
	r.Outcome, r.Reason = recovered.Outcome, recovered.Reason
	b.must(n.Intents.Record(ctx, n.fence, r))
	b.must(n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: r, Rest: settled}))
	if i := b.ended(signer, 1)[0].Intent; i.State != txm.Cancelled || i.Outcome != job.DroppedRecovered {
		b.Errorf("ended: %+v", i)
	}
	if n = n.succeed(); n.cursor.Promise() != first.Nonce+1 {
		b.Errorf("the cancelled number is promised again: %+v", n.cursor)
	}
}

// NON-6: a number below the cursor that nobody has is spent by a transaction of its own, once, and is nobody's
// afterwards.
func filled(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	fence := n.fence
	var err error
	if n.cursor, err = n.Nonces.TakeOver(ctx, fence, 3); err != nil {
		b.Fatal(err)
	}
	queued := b.queue(anOrder(signer, 1))[0]
	mined, taken := queued.ID, n.mustClaim(queued) // number 3
	gap := sign(0, signer, 1)
	b.must(n.Intents.Fill(ctx, fence, gap))
	inFlight := b.inFlight(signer)
	if len(inFlight) != 2 || inFlight[0].Intent.Nonce != 1 || inFlight[0].Newest().Kind != txm.Fill ||
		!inFlight[0].Leaving() ||
		inFlight[0].Intent.Job.Kind != txm.Filler || inFlight[0].Newest().Hash != gap.Hash {
		b.Fatalf("in flight: %+v", inFlight)
	}
	for what, n2 := range map[string]uint64{"twice": 1, "with a job": taken.Nonce, "at the cursor": 4, "above it": 9} {
		b.mustBeRefused("filling a number "+what, n.Intents.Fill(ctx, fence, sign(99, signer, n2)), txm.Moved)
	}
	raise := dearer(gap, txm.Fill, 200, 200)
	b.must(n.Intents.Replace(ctx, fence, after(inFlight[0].Intent.ID, gap, raise, txm.Fill, txm.Verdict{})))
	n.land(raise)
	b.ended(signer, 0)
	b.mustBeRefused("filling what was spent", n.Intents.Fill(ctx, fence, sign(98, signer, 1)), txm.Moved)
	old := *n
	n.succeed()
	b.mustBeLost("a former owner's filling", old.Intents.Fill(ctx, old.fence, sign(97, signer, 2)))
	b.mustBeLost("a former owner's raise",
		old.Intents.Replace(ctx, old.fence, after(mined, taken, dearer(taken, txm.Exec, 200, 200), txm.Exec,
			txm.Verdict{})))
}

// What may be spent is known from the store: what was burnt, and the dearest of what is in flight.
func spent(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	sum := func(what string, orders uint64) {
		b.Helper()
		got, err := b.Intents.Spent(ctx, signer)
		if err != nil || got[job.OrderLane] != chain.U64(orders) || !got[job.LiquidationLane].IsZero() {
			b.Errorf("%s: %v wei, %v; want %d, for orders alone", what, got, err, orders)
		}
	}
	if earned, err := b.Intents.Earned(ctx, signer); err != nil || !earned.Sum().IsZero() {
		b.Errorf("earned %v, %v", earned, err)
	}
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2), aLiquidation(signer, 3, 0))
	sum("nothing", 0)
	first := n.mustClaim(intents[0])
	sum("one in flight", 21_000*90)
	second := n.mustClaim(intents[1])
	b.must(n.Intents.Replace(ctx, n.fence, after(intents[1].ID, second, dearer(second, txm.Exec, 100, 100), txm.Exec,
		txm.Verdict{})))
	sum("two in flight, one raised", 21_000*(90+100))
	n.land(first)
	sum("one landed", 20_000*7+21_000*100)
	dear := one(intents[2], sign(intents[2].ID, signer, n.cursor.Promise()), n.cursor.Next)
	dear.Claims[0].Tx.Gas, dear.Claims[0].Tx.Cap = 6_000_000, 5_000_000_000_000 // 30 BNB
	b.must(n.Intents.Claim(ctx, n.fence, dear))
	got, err := b.Intents.Spent(ctx, signer)
	if want := txm.MustBNB("30").Wei(); err != nil || got[job.LiquidationLane] != want {
		b.Errorf("more than 64 bits of wei: %v, %v; want %s", got, err, want)
	}
}

// LIQ-10: failures in a row are counted, and anything else ends the row.
func tries(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	j := anOrder(signer, 1)
	for i, c := range []struct {
		before job.Outcome // how the attempt before ended
		tries  uint32
	}{{"", 0}, {job.Reverted, 1}, {job.Refused, 2}, {job.DroppedRecovered, 0}, {job.Reverted, 1}, {job.Foreign, 2},
		{job.LostRace, 0}} {
		if i > 0 {
			end := txm.Ending{Verdict: txm.Verdict{Outcome: c.before},
				Rest: txm.Rest{RetryAfterMs: now + uint64(i) - 1}}
			b.must(n.Intents.Skip(ctx, n.fence, b.find(j).ID, end))
		}
		b.say(found(j, uint64(i)), txm.NewAttempt)
		if got := b.find(j); got.Tries != c.tries || got.Attempt != uint32(i+1) {
			b.Errorf("attempt %d after %q: %d tries, want %d", got.Attempt, c.before, got.Tries, c.tries)
		}
	}
}

// NON-3, LIQ-6: a batch is claimed whole or not at all, with numbers in the order of its claims.
func batches(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	batch := func(intents []*txm.Intent, numbers ...uint64) txm.Batch {
		whole := txm.Batch{Cursor: n.cursor.Next, Limits: limits}
		for i, intent := range intents {
			whole.Claims = append(whole.Claims,
				txm.Claim{Intent: intent.ID, Kind: intent.Job.Kind, Tx: sign(intent.ID, signer, numbers[i])})
		}
		return whole
	}
	intents := b.queue(anOrder(signer, 1), aLiquidation(signer, 2, 1), anOrder(signer, 3),
		aLiquidation(signer, 4, 1))
	more := b.queue(anOrder(signer, 5), aLiquidation(signer, 2, 2), anOrder(signer, 6))
	b.must(n.Intents.Claim(ctx, n.fence, batch(intents, 0, 1, 2, 3)))
	n.cursor.Next = 4
	inFlight := b.inFlight(signer)
	for i, f := range inFlight {
		if f.Intent.ID != intents[i].ID || f.Intent.Nonce != uint64(i) || f.Newest().
			Hash != sign(intents[i].ID, signer, uint64(i)).Hash {
			b.Errorf("pending transaction %d: %+v", i, f)
		}
	}
	b.mustBeRefused("two liquidations of one account, one in a batch",
		n.Intents.Claim(ctx, n.fence, batch(more, 4, 5, 6)), txm.AccountBusy)
	twins := []*txm.Intent{more[0], intents[0]}
	b.mustBeRefused("a batch with one that has moved on", n.Intents.Claim(ctx, n.fence, batch(twins, 4, 5)), txm.Moved)
	b.mustBeRefused("a batch with one intent twice",
		n.Intents.Claim(ctx, n.fence, batch([]*txm.Intent{more[0], more[0]}, 4, 5)), txm.Moved)
	free := []*txm.Intent{more[0], more[2]}
	for what, numbers := range map[string][]uint64{"with a hole": {4, 6}, "twice the same": {4, 4}} {
		if err := n.Intents.Claim(ctx, n.fence, batch(free, numbers...)); err == nil || txm.Refused(err) != "" {
			b.Errorf("numbers %s: %v", what, err)
		}
	}
	b.mustBeRefused("a batch with a number that is taken", n.Intents.Claim(ctx, n.fence, batch(free, 3, 4)),
		txm.CursorMoved)
	if len(inFlight) != 4 || len(b.inFlight(signer)) != 4 || len(b.heads(signer)) != 2 {
		b.Error("a refused batch left something behind")
	}
	b.must(n.Intents.Claim(ctx, n.fence, batch(free, 4, 5)))
	n.cursor.Next = 6
	few := batch(b.queue(anOrder(signer, 7), anOrder(signer, 8)), 6, 7)
	few.Limits.Signer = 7
	b.mustBeRefused("a batch that is too large by one", n.Intents.Claim(ctx, n.fence, few), txm.SignerFull)
	narrow := batch(b.queue(aLiquidation(signer, 9, 1), aLiquidation(signer, 10, 1)), 6, 7)
	narrow.Limits.Liquidations = 3
	b.mustBeRefused("a batch with a liquidation too many", n.Intents.Claim(ctx, n.fence, narrow), txm.KeeperFull)
	narrow.Limits.Liquidations = 10
	for i := range narrow.Claims {
		narrow.Claims[i].Kind = job.Order
	}
	b.mustBeRefused("liquidations that are called orders", n.Intents.Claim(ctx, n.fence, narrow), txm.Moved)
	if got := b.inFlight(signer); len(got) != 6 ||
		!slices.IsSortedFunc(got, func(a, c txm.PendingTx) int { return int(a.Intent.Nonce) - int(c.Intent.Nonce) }) {
		b.Errorf("in flight: %+v", got)
	}
}
