package txmtest

import (
	"errors"
	"reflect"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// S5, S6, NON-2: every write of a former owner, on a row the successor has touched and on one it has not.
func staleWrites(b *bench) {
	old, signer := b.sender()
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4))
	sent, mined, ended := old.mustClaim(intents[0]), old.mustClaim(intents[1]), old.mustClaim(intents[2])
	b.must(old.Intents.Record(b.Context(), old.fence, minedAt(mined, 4, 0)))
	successor := old.succeed()
	successor.land(ended)
	ctx, end := b.Context(), txm.Ending{Verdict: txm.Verdict{Outcome: job.SkippedDone}}
	for what, write := range map[string]func() error{
		"noted":  func() error { return old.Intents.Noted(ctx, old.fence, sent.Hash, "accepted", true) },
		"record": func() error { return old.Intents.Record(ctx, old.fence, minedAt(sent, 4, 0)) },
		"unmine": func() error { return old.Intents.Unmine(ctx, old.fence, minedAt(mined, 4, 0)) },
		"finish": func() error {
			return old.Intents.Finish(ctx, old.fence, txm.FinalReceipt{Receipt: minedAt(mined, 4, 0), Rest: settled})
		},
		"finish what the successor finished": func() error {
			return old.Intents.Finish(ctx, old.fence, txm.FinalReceipt{Receipt: minedAt(ended, 5, 0), Rest: settled})
		},
		"nonce lost": func() error { return old.Intents.NonceLost(ctx, old.fence, intents[0].ID, end) },
		"skip":       func() error { return old.Intents.Skip(ctx, old.fence, intents[3].ID, end) },
		"report":     func() error { return old.Intents.Reported(ctx, old.fence, []int64{intents[2].ID}) },
		"pause":      func() error { return old.Intents.Pause(ctx, old.fence, "by a ghost") },
	} {
		b.mustBeLost(what, write())
	}
	inFlight := b.inFlight(signer)
	if len(inFlight) != 2 || inFlight[0].Intent.State != txm.Signed || inFlight[0].Newest().Sends != 0 ||
		inFlight[1].Intent.State != txm.Mined {
		b.Errorf("a former owner moved something: %+v", inFlight)
	}
	if heads := b.heads(signer); len(heads) != 1 || heads[0].ID != intents[3].ID {
		b.Errorf("queued: %+v", heads)
	}
	b.ended(signer, 1)
}

// S7, S12: what a process began under one lease term it cannot end under a later one by accident: the fence is the
// lease term's, not the process's.
func ownPast(b *bench) {
	n, signer := b.sender()
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(intents[0])
	past := *n
	n.expire()
	n.begin(signer)
	b.mustBeLost("a late write of an earlier lease term", n.Intents.Record(b.Context(), past.fence, minedAt(tx, 4, 0)))
	_, err := past.claim(intents[1])
	b.mustBeLost("a late claim of an earlier lease term", err)
	b.onlyPending(signer, txm.Signed)
	n.land(tx)
}

// The road of a receipt: sent, mined, gone with its block, mined on another branch, final.
func receipts(b *bench) {
	n, signer := b.sender()
	ctx := b.Context()
	tx := n.mustClaim(b.queue(anOrder(signer, 1))[0])
	for before := b.onlyPending(signer, txm.Signed).Age; b.onlyPending(signer, txm.Signed).Age <= before; {
		if before < 0 || before > time.Minute {
			b.Fatalf("a pending transaction that has just begun is %s old", before)
		}
	}

	b.must(n.Intents.Noted(ctx, n.fence, tx.Hash, "ambiguous", false))
	if f := b.onlyPending(signer, txm.Signed); f.Newest().Sends != 1 || f.Newest().LastClass != "ambiguous" {
		b.Errorf("noted: %+v", f.Newest())
	}
	b.must(n.Intents.Noted(ctx, n.fence, tx.Hash, "accepted", true))
	b.onlyPending(signer, txm.Sent)

	first, second := minedAt(tx, 4, 0), minedAt(tx, 4, 1)
	second.OK, second.Outcome, second.Reason = false, job.LostRace, "EmptyOrder"
	b.must(n.Intents.Record(ctx, n.fence, first))
	if f := b.onlyPending(signer, txm.Mined); f.Mined == nil || !reflect.DeepEqual(*f.Mined, first) {
		b.Errorf("recorded %+v, want %+v", f.Mined, first)
	}
	b.must(n.Intents.Noted(ctx, n.fence, tx.Hash, "known", true)) // a late answer takes nothing back
	b.onlyPending(signer, txm.Mined)
	b.must(n.Intents.Unmine(ctx, n.fence, first))
	if f := b.onlyPending(signer, txm.Sent); f.Mined != nil || f.Newest().Hash != tx.Hash ||
		f.Intent.Nonce != tx.Nonce {
		b.Errorf("taken back: %+v", f)
	}
	b.must(n.Intents.Record(ctx, n.fence, first))
	b.must(n.Intents.Record(ctx, n.fence, second)) // the branch changed between two looks
	if f := b.onlyPending(signer, txm.Mined); !reflect.DeepEqual(*f.Mined, second) {
		b.Errorf("recorded %+v, want %+v", f.Mined, second)
	}
	b.mustBeRefused("finishing on the branch that is gone",
		n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: first, Rest: settled}), txm.Moved)
	b.mustBeRefused("taking back the branch that is gone", n.Intents.Unmine(ctx, n.fence, first), txm.Moved)
	b.must(n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: second, Rest: settled}))
	none(b, "in flight after the end", b.inFlight(signer))
}

// Several receipts are stored, and end their intents, in one statement: all of them or none.
func batchOfReceipts(b *bench) {
	n, signer := b.sender()
	ctx := b.Context()
	var receipts []txm.Receipt
	var finals []txm.FinalReceipt
	for i, intent := range b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3)) {
		r := minedAt(n.mustClaim(intent), 4, byte(i))
		if i == 1 {
			r.OK, r.Outcome, r.Reason, r.Settlement = false, job.Reverted, "a reason", nil
		}
		receipts = append(receipts, r)
		finals = append(finals, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RetryAfterMs: uint64(i), GivenUp: i == 1}})
	}
	unknown := receipts[2]
	unknown.TxHash[0]++
	b.mustBeRefused("a receipt of an unknown transaction beside others",
		n.Intents.Record(ctx, n.fence, receipts[0], receipts[1], unknown), txm.Moved)
	for _, f := range b.inFlight(signer) {
		if f.Intent.State != txm.Signed || f.Mined != nil {
			b.Errorf("stored beside what was refused: %+v", f)
		}
	}
	b.must(n.Intents.Record(ctx, n.fence, receipts...))
	for i, f := range b.inFlight(signer) {
		if f.Intent.State != txm.Mined || f.Mined == nil || !reflect.DeepEqual(*f.Mined, receipts[i]) {
			b.Errorf("recorded %+v, want %+v", f.Mined, receipts[i])
		}
	}
	elsewhere := finals[2]
	elsewhere.Block.Hash[5]++
	b.mustBeRefused("finishing one on another branch beside others",
		n.Intents.Finish(ctx, n.fence, finals[0], finals[1], elsewhere), txm.Moved)
	if inFlight := b.inFlight(signer); len(inFlight) != 3 {
		b.Errorf("ended beside what was refused: %+v", inFlight)
	}
	b.must(n.Intents.Finish(ctx, n.fence, finals...))
	none(b, "in flight after the end", b.inFlight(signer))
	for i, e := range b.ended(signer, 3) {
		if e.Intent.State != txm.Final(receipts[i].Outcome) || e.Intent.GivenUp != (i == 1) ||
			e.Intent.Outcome != receipts[i].Outcome {
			b.Errorf("ended as %+v", e.Intent)
		}
	}
	b.mustBeRefused("finishing again", n.Intents.Finish(ctx, n.fence, finals...), txm.Moved)
}

func guards(b *bench) {
	n, signer := b.sender()
	ctx, end := b.Context(), txm.Ending{Verdict: txm.Verdict{Outcome: job.SkippedDone}}
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(intents[0])
	r := minedAt(tx, 4, 0)
	b.mustBeRefused("skipping what has a number", n.Intents.Skip(ctx, n.fence, intents[0].ID, end), txm.Moved)
	final := txm.FinalReceipt{Receipt: r, Rest: settled}
	b.mustBeRefused("finishing without a receipt", n.Intents.Finish(ctx, n.fence, final), txm.Moved)
	b.mustBeRefused("taking back what is not there", n.Intents.Unmine(ctx, n.fence, r), txm.Moved)
	b.mustBeRefused("losing no nonce", n.Intents.NonceLost(ctx, n.fence, intents[1].ID, end), txm.Moved)
	b.must(n.Intents.Record(ctx, n.fence, r))
	b.mustBeRefused("losing the nonce of what was mined", n.Intents.NonceLost(ctx, n.fence, intents[0].ID, end),
		txm.Moved)
	b.must(n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: r, Rest: settled}))
	b.mustBeRefused("finishing twice", n.Intents.Finish(ctx, n.fence, final), txm.Moved)
	b.mustBeRefused("recording what has ended", n.Intents.Record(ctx, n.fence, minedAt(tx, 6, 0)), txm.Moved)
	b.mustBeRefused("taking back what is final", n.Intents.Unmine(ctx, n.fence, r), txm.Moved)
	b.mustBeRefused("noting a hash nobody stored", n.Intents.Noted(ctx, n.fence, sign(1, signer, 99).Hash, "accepted",
		true), txm.Moved)
	if _, err := b.Intents.Enqueue(ctx, anOrder(unregistered, 9)); !errors.Is(err, txm.ErrUnknownSigner) {
		b.Errorf("a job of an unknown signer: %v", err)
	}
}

func foreign(b *bench) {
	n, signer := b.sender()
	ctx := b.Context()
	j := anOrder(signer, 1)
	intent := b.queue(j)[0]
	tx := n.mustClaim(intent)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: "nonce 0 was spent by somebody else"},
		Rest: txm.Rest{RetryAfterMs: now}}
	b.must(n.Intents.NonceLost(ctx, n.fence, intent.ID, end))
	none(b, "still in flight", b.inFlight(signer))
	b.say(found(j, 1), txm.NewAttempt)
	none(b, "to do for a paused signer", b.heads(signer))
	if i := b.ended(signer, 1)[0].Intent; i.Outcome != job.Foreign || i.State != txm.Foreign {
		b.Errorf("ended: %+v", i)
	}
	if n = n.succeed(); n.cursor.Promise() != tx.Nonce+1 {
		b.Errorf("the lost number is promised again: %+v", n.cursor)
	}
}
