package txmtest

import (
	"errors"
	"reflect"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// S5, S6, NON-2: every write of a former owner, on a row the successor has touched and on one it has not.
func staleWrites(b *bench) {
	t := b.t
	signer := b.signer(t)
	old := b.node(t, signer)
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4))
	sent, mined, ended := old.mustClaim(t, intents[0]), old.mustClaim(t, intents[1]), old.mustClaim(t, intents[2])
	must(t, old.Intents.Record(t.Context(), old.fence, minedAt(mined, 4, 0)))
	successor := old.succeed(t)
	successor.land(t, ended)
	ctx, end := t.Context(), txm.Ending{Verdict: txm.Verdict{Outcome: job.SkippedDone}}
	for what, write := range map[string]func() error{
		"noted":     func() error { return old.Intents.Noted(ctx, old.fence, sent.Hash, "accepted", true) },
		"record":    func() error { return old.Intents.Record(ctx, old.fence, minedAt(sent, 4, 0)) },
		"take back": func() error { return old.Intents.TakeBack(ctx, old.fence, minedAt(mined, 4, 0)) },
		"finish": func() error {
			return old.Intents.Finish(ctx, old.fence, txm.FinalReceipt{Receipt: minedAt(mined, 4, 0), Rest: settled})
		},
		"finish what the successor finished": func() error {
			return old.Intents.Finish(ctx, old.fence, txm.FinalReceipt{Receipt: minedAt(ended, 5, 0), Rest: settled})
		},
		"disown": func() error { return old.Intents.Disown(ctx, old.fence, intents[0].ID, end) },
		"skip":   func() error { return old.Intents.Skip(ctx, old.fence, intents[3].ID, end) },
		"report": func() error { return old.Intents.Reported(ctx, old.fence, []int64{intents[2].ID}) },
		"pause":  func() error { return old.Intents.Pause(ctx, old.fence, "by a ghost") },
	} {
		mustBeLost(t, what, write())
	}
	flights := b.flights(t, signer)
	if len(flights) != 2 || flights[0].Intent.State != txm.Signed || flights[0].Newest().Sends != 0 ||
		flights[1].Intent.State != txm.Mined {
		t.Errorf("a former owner moved something: %+v", flights)
	}
	if heads := b.heads(t, signer); len(heads) != 1 || heads[0].ID != intents[3].ID {
		t.Errorf("queued: %+v", heads)
	}
	if unreported, err := b.Intents.Unreported(ctx, signer, 9); err != nil || len(unreported) != 1 {
		t.Errorf("unreported: %+v, %v", unreported, err)
	}
}

// S7, S12: what a process began under one tenure it cannot end under a later one by accident: the fence is the
// tenure's, not the process's.
func ownPast(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(t, intents[0])
	past := *n
	n.expire(t)
	n.begin(t, signer)
	mustBeLost(t, "a late write of an earlier tenure", n.Intents.Record(t.Context(), past.fence, minedAt(tx, 4, 0)))
	_, err := past.claim(t, intents[1])
	mustBeLost(t, "a late claim of an earlier tenure", err)
	b.onlyFlight(t, signer, txm.Signed)
	n.land(t, tx)
}

// The road of a receipt: sent, mined, gone with its block, mined on another branch, final.
func receipts(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	ctx := t.Context()
	tx := n.mustClaim(t, b.queue(t, anOrder(signer, 1))[0])
	for before := b.onlyFlight(t, signer, txm.Signed).Age; b.onlyFlight(t, signer, txm.Signed).Age <= before; {
		if before < 0 || before > time.Minute {
			t.Fatalf("a flight that has just begun is %s old", before)
		}
	}

	must(t, n.Intents.Noted(ctx, n.fence, tx.Hash, "ambiguous", false))
	if f := b.onlyFlight(t, signer, txm.Signed); f.Newest().Sends != 1 || f.Newest().LastClass != "ambiguous" {
		t.Errorf("noted: %+v", f.Newest())
	}
	must(t, n.Intents.Noted(ctx, n.fence, tx.Hash, "accepted", true))
	b.onlyFlight(t, signer, txm.Sent)

	first, second := minedAt(tx, 4, 0), minedAt(tx, 4, 1)
	second.OK, second.Outcome, second.Reason = false, job.LostRace, "EmptyOrder"
	must(t, n.Intents.Record(ctx, n.fence, first))
	if f := b.onlyFlight(t, signer, txm.Mined); f.Mined == nil || !reflect.DeepEqual(*f.Mined, first) {
		t.Errorf("recorded %+v, want %+v", f.Mined, first)
	}
	must(t, n.Intents.Noted(ctx, n.fence, tx.Hash, "known", true)) // a late answer takes nothing back
	b.onlyFlight(t, signer, txm.Mined)
	must(t, n.Intents.TakeBack(ctx, n.fence, first))
	if f := b.onlyFlight(t, signer, txm.Sent); f.Mined != nil || f.Newest().Hash != tx.Hash ||
		f.Intent.Nonce != tx.Nonce {
		t.Errorf("taken back: %+v", f)
	}
	must(t, n.Intents.Record(ctx, n.fence, first))
	must(t, n.Intents.Record(ctx, n.fence, second)) // the branch changed between two looks
	if f := b.onlyFlight(t, signer, txm.Mined); !reflect.DeepEqual(*f.Mined, second) {
		t.Errorf("recorded %+v, want %+v", f.Mined, second)
	}
	mustBeRefused(t, "finishing on the branch that is gone",
		n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: first, Rest: settled}), txm.Moved)
	mustBeRefused(t, "taking back the branch that is gone", n.Intents.TakeBack(ctx, n.fence, first), txm.Moved)
	must(t, n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: second, Rest: settled}))
	if flights := b.flights(t, signer); len(flights) != 0 {
		t.Errorf("in flight after the end: %+v", flights)
	}
}

// Several receipts are stored, and end their intents, in one statement: all of them or none.
func batchOfReceipts(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	ctx := t.Context()
	var receipts []txm.Receipt
	var finals []txm.FinalReceipt
	for i, intent := range b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3)) {
		r := minedAt(n.mustClaim(t, intent), 4, byte(i))
		if i == 1 {
			r.OK, r.Outcome, r.Reason, r.Settlement = false, job.Reverted, "a reason", nil
		}
		receipts = append(receipts, r)
		finals = append(finals, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{RearmMs: uint64(i), GivenUp: i == 1}})
	}
	unknown := receipts[2]
	unknown.TxHash[0]++
	mustBeRefused(t, "a receipt of an unknown transaction beside others",
		n.Intents.Record(ctx, n.fence, receipts[0], receipts[1], unknown), txm.Moved)
	for _, f := range b.flights(t, signer) {
		if f.Intent.State != txm.Signed || f.Mined != nil {
			t.Errorf("stored beside what was refused: %+v", f)
		}
	}
	must(t, n.Intents.Record(ctx, n.fence, receipts...))
	for i, f := range b.flights(t, signer) {
		if f.Intent.State != txm.Mined || f.Mined == nil || !reflect.DeepEqual(*f.Mined, receipts[i]) {
			t.Errorf("recorded %+v, want %+v", f.Mined, receipts[i])
		}
	}
	elsewhere := finals[2]
	elsewhere.Block.Hash[5]++
	mustBeRefused(t, "finishing one on another branch beside others",
		n.Intents.Finish(ctx, n.fence, finals[0], finals[1], elsewhere), txm.Moved)
	if flights := b.flights(t, signer); len(flights) != 3 {
		t.Errorf("ended beside what was refused: %+v", flights)
	}
	must(t, n.Intents.Finish(ctx, n.fence, finals...))
	ended, err := b.Intents.Unreported(ctx, signer, 9)
	if err != nil || len(ended) != 3 || len(b.flights(t, signer)) != 0 {
		t.Fatalf("ended: %+v, %v", ended, err)
	}
	for i, e := range ended {
		if e.Intent.State != txm.Final(receipts[i].Outcome) || e.Intent.GivenUp != (i == 1) ||
			e.Intent.Outcome != receipts[i].Outcome {
			t.Errorf("ended as %+v", e.Intent)
		}
	}
	mustBeRefused(t, "finishing again", n.Intents.Finish(ctx, n.fence, finals...), txm.Moved)
}

func guards(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	ctx, end := t.Context(), txm.Ending{Verdict: txm.Verdict{Outcome: job.SkippedDone}}
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(t, intents[0])
	r := minedAt(tx, 4, 0)
	mustBeRefused(t, "skipping what has a number", n.Intents.Skip(ctx, n.fence, intents[0].ID, end), txm.Moved)
	final := txm.FinalReceipt{Receipt: r, Rest: settled}
	mustBeRefused(t, "finishing without a receipt", n.Intents.Finish(ctx, n.fence, final), txm.Moved)
	mustBeRefused(t, "taking back what is not there", n.Intents.TakeBack(ctx, n.fence, r), txm.Moved)
	mustBeRefused(t, "disowning what has no number", n.Intents.Disown(ctx, n.fence, intents[1].ID, end), txm.Moved)
	must(t, n.Intents.Record(ctx, n.fence, r))
	mustBeRefused(t, "disowning what was mined", n.Intents.Disown(ctx, n.fence, intents[0].ID, end), txm.Moved)
	must(t, n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: r, Rest: settled}))
	mustBeRefused(t, "finishing twice", n.Intents.Finish(ctx, n.fence, final), txm.Moved)
	mustBeRefused(t, "recording what has ended", n.Intents.Record(ctx, n.fence, minedAt(tx, 6, 0)), txm.Moved)
	mustBeRefused(t, "taking back what is final", n.Intents.TakeBack(ctx, n.fence, r), txm.Moved)
	mustBeRefused(t, "noting a hash nobody stored", n.Intents.Noted(ctx, n.fence, sign(1, signer, 99).Hash, "accepted",
		true), txm.Moved)
	if _, err := b.Intents.Enqueue(ctx, anOrder(unregistered, 9)); !errors.Is(err, txm.ErrUnknownSigner) {
		t.Errorf("a job of an unknown signer: %v", err)
	}
}

func foreign(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	ctx := t.Context()
	j := anOrder(signer, 1)
	intent := b.queue(t, j)[0]
	tx := n.mustClaim(t, intent)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: "nonce 0 was spent by somebody else"},
		Rest: txm.Rest{RearmMs: now}}
	must(t, n.Intents.Disown(ctx, n.fence, intent.ID, end))
	if flights := b.flights(t, signer); len(flights) != 0 {
		t.Errorf("still in flight: %+v", flights)
	}
	b.say(t, found(j, 1), txm.NewArm)
	if heads := b.heads(t, signer); len(heads) != 0 {
		t.Errorf("a paused signer has %+v to do", heads)
	}
	ended, err := b.Intents.Unreported(ctx, signer, 9)
	if err != nil || len(ended) != 1 || ended[0].Intent.Outcome != job.Foreign || ended[0].Intent.State != txm.Foreign {
		t.Errorf("ended: %+v, %v", ended, err)
	}
	if n = n.succeed(t); n.cursor.Promise() != tx.Nonce+1 {
		t.Errorf("the disowned number is promised again: %+v", n.cursor)
	}
}
