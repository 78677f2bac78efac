package txmtest

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// NON-13.
func claimStores(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	for i, intent := range b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3)) {
		tx := n.mustClaim(t, intent)
		if tx.Nonce != uint64(i) {
			t.Errorf("claim %d got number %d", i, tx.Nonce)
		}
		f := b.flights(t, signer)[i]
		a := f.Newest()
		if f.Intent.State != txm.Signed || f.Intent.Nonce != tx.Nonce || f.Intent.Job.ID != intent.Job.ID ||
			f.Mined != nil || len(f.Attempts) != 1 {
			t.Errorf("stored flight %+v", f)
		}
		if a.Hash != tx.Hash || !bytes.Equal(a.Raw, tx.Raw) || a.Nonce != tx.Nonce || a.Gas != tx.Gas ||
			a.Tip != tx.Tip || a.Cap != tx.Cap ||
			a.Kind != txm.Exec || a.Seq != 1 || a.Sends != 0 {
			t.Errorf("stored attempt %+v", a)
		}
	}
	if heads := b.heads(t, signer); len(heads) != 0 {
		t.Errorf("still queued: %+v", heads)
	}
}

// S1, NON-2, LIQ-18: after a takeover the old owner's claim of a number nobody has meets no row that could refuse it;
// the lease row does.
func staleClaim(b *bench) {
	t := b.t
	signer := b.signer(t)
	old := b.node(t, signer)
	intent := b.queue(t, anOrder(signer, 1))[0]
	successor := old.succeed(t)
	_, err := old.claim(t, intent)
	mustBeLost(t, "a former owner's claim", err)
	if flights := b.flights(t, signer); len(flights) != 0 {
		t.Fatalf("a former owner stored %+v", flights)
	}
	successor.mustClaim(t, intent)
}

// S2: the successor finds the number that its predecessor took, whether or not the predecessor knows that it did.
func takenNumber(b *bench) {
	t := b.t
	signer := b.signer(t)
	old := b.node(t, signer)
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2))
	taken := old.mustClaim(t, intents[0]) // and the answer is lost
	successor := old.succeed(t)
	if successor.cursor.Promise() == taken.Nonce {
		t.Fatal("the taken number is promised again")
	}
	stale := successor.cursor
	stale.Next = taken.Nonce
	naive := &node{bench: b, owner: successor.owner, fence: successor.fence, cursor: stale}
	_, err := naive.claim(t, intents[1])
	mustBeRefused(t, "claiming a taken number", err, txm.CursorMoved)
	b.onlyFlight(t, signer, txm.Signed)
}

// S3: two goroutines of one process, one promised number.
func oneCursor(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	jobs := []job.Job{anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4)}
	var won atomic.Int32
	var group sync.WaitGroup
	for _, intent := range b.queue(t, jobs...) {
		group.Go(func() {
			twin := *n
			switch _, err := twin.claim(t, intent); {
			case err == nil:
				won.Add(1)
			case txm.Refused(err) != txm.CursorMoved:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d claims of one number succeeded", won.Load())
	}
	b.onlyFlight(t, signer, txm.Signed)
}

// S4: what was mined is given to nobody, not even as a gap.
func consumedStays(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(t, intents[0])
	n.land(t, tx)
	n = n.succeed(t)
	if n.cursor.Next != tx.Nonce+1 || len(n.cursor.Released) != 0 {
		t.Fatalf("the successor's cursor is %+v", n.cursor)
	}
	gap := one(intents[1], sign(intents[1].ID, signer, tx.Nonce), n.cursor.Next)
	mustBeRefused(t, "claiming a consumed number as a gap", n.Intents.Claim(t.Context(), n.fence, gap), txm.CursorMoved)
	n.mustClaim(t, intents[1])
}

// S13, NON-13: a signed number waits for the chain, for as long as it takes. The successor adopts it with its bytes.
func nothingByTime(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	tx := n.mustClaim(t, b.queue(t, anOrder(signer, 1))[0])
	n.expire(t)
	n = b.node(t, signer)
	if n.cursor.Promise() != tx.Nonce+1 {
		t.Errorf("the successor is promised %d", n.cursor.Promise())
	}
	if adopted := b.onlyFlight(t, signer, txm.Signed).Newest(); adopted.Hash != tx.Hash ||
		!bytes.Equal(adopted.Raw, tx.Raw) {
		t.Errorf("adopted %+v", adopted)
	}
}

// NON-3: the commit whose answer was lost is found by its intent.
func lookUp(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	intent := b.queue(t, anOrder(signer, 1))[0]
	if hash, err := b.Intents.Claimed(t.Context(), intent.ID); err != nil || !hash.IsZero() {
		t.Errorf("before the claim: %s, %v", hash, err)
	}
	tx := n.mustClaim(t, intent)
	if hash, err := b.Intents.Claimed(t.Context(), intent.ID); err != nil || hash != tx.Hash {
		t.Errorf("after the claim: %s, %v", hash, err)
	}
	_, err := n.claim(t, intent)
	mustBeRefused(t, "claiming once more", err, txm.Moved)
}

// LIQ-6: also when the claims come from several senders at once.
func oneLiquidationPerAccount(b *bench) {
	t := b.t
	const senders = 4
	nodes, intents := make([]*node, 0, senders), make([]*txm.Intent, 0, senders)
	for i := range senders {
		signer := b.signer(t)
		nodes = append(nodes, b.node(t, signer))
		intents = append(intents, b.queue(t, aLiquidation(signer, 1, byte(i)))...)
	}
	errs := claimAll(t, nodes, intents)
	won := slices.Index(errs, nil)
	for i, err := range errs {
		if i != won && txm.Refused(err) != txm.AccountBusy && txm.Refused(err) != txm.KeeperFull {
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if won < 0 || slices.Contains(errs[won+1:], nil) {
		t.Fatalf("claims ended with %v, want one success", errs)
	}
	other := (won + 1) % len(nodes)
	_, err := nodes[other].claim(t, intents[other])
	mustBeRefused(t, "a second liquidation of the account", err, txm.AccountBusy)
	nodes[won].land(t, sign(intents[won].ID, nodes[won].fence.Signer, 0))
	nodes[other].mustClaim(t, intents[other])
}

// An order that its owner changes while it is being executed is another job. Executing both would burn the gas of the
// second (NON-3).
func oneTransactionPerOrder(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	before, after := anOrder(signer, 1), anOrder(signer, 1)
	after.ID = job.OrderID(after.Key, 2)
	intents := b.queue(t, before, after)
	tx := n.mustClaim(t, intents[0])
	_, err := n.claim(t, intents[1])
	mustBeRefused(t, "the changed order while the first is in flight", err, txm.KeyBusy)
	n.land(t, tx)
	n.mustClaim(t, intents[1])
}

// What is left to deleverage is known when the one before has landed, in whichever sender's hands it is. Another side
// of the market has nothing to do with it.
func oneDeleveragingOfASide(b *bench) {
	t := b.t
	one, two := b.signer(t), b.signer(t)
	first, second := b.node(t, one), b.node(t, two)
	adl := func(signer chain.Address, position byte, isLong bool) job.Job {
		j := aLiquidation(signer, position, position)
		j.ID, j.Kind, j.Class, j.Market, j.IsLong = job.AdlID(j.Key, 1), job.Adl, job.ClassAdl, chain.Address{7}, isLong
		return j
	}
	update := adl(one, 4, true)
	update.ID, update.Kind = job.AdlStateID(update.Market, true, 1), job.AdlState
	mine, theirs := b.queue(t, adl(one, 1, true), adl(one, 2, false), update), b.queue(t, adl(two, 3, true))
	tx := first.mustClaim(t, mine[0])
	_, err := second.claim(t, theirs[0])
	mustBeRefused(t, "a second one of the side", err, txm.SideBusy)
	if heads := b.heads(t, two); len(heads) != 0 {
		t.Errorf("shown although it would be refused: %+v", heads)
	}
	if heads := b.heads(t, one); len(heads) != 1 || heads[0].ID != mine[1].ID {
		t.Errorf("to be done: %+v, want the other side's", heads)
	}
	first.mustClaim(t, mine[1])
	first.land(t, tx)
	second.mustClaim(t, theirs[0])
	_, err = first.claim(t, mine[2])
	mustBeRefused(t, "the update of a side that is being deleveraged", err, txm.SideBusy)
}

func claimAll(t *testing.T, nodes []*node, intents []*txm.Intent) []error {
	t.Helper()
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { _, errs[i] = n.claim(t, intents[i]) })
	}
	group.Wait()
	return errs
}

// LIQ-6: counted over all signers, freed by the end of one, and not in the way of orders.
func liquidationLimit(b *bench) {
	t := b.t
	signers := []chain.Address{b.signer(t), b.signer(t)}
	nodes := []*node{b.node(t, signers[0]), b.node(t, signers[1])}
	var first txm.SignedTx
	for i := range limits.Liquidations {
		tx := nodes[i%2].mustClaim(t, b.queue(t, aLiquidation(signers[i%2], byte(i), 0))[0])
		if i == 0 {
			first = tx
		}
	}
	late := b.queue(t, aLiquidation(signers[1], 99, 0))[0]
	_, err := nodes[1].claim(t, late)
	mustBeRefused(t, "one liquidation too many", err, txm.KeeperFull)
	nodes[1].mustClaim(t, b.queue(t, anOrder(signers[1], 1))[0])
	nodes[0].land(t, first)
	nodes[1].mustClaim(t, late)
}

func flightLimit(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	var first txm.SignedTx
	for i := range limits.Signer {
		if tx := n.mustClaim(t, b.queue(t, anOrder(signer, byte(i)))[0]); i == 0 {
			first = tx
		}
	}
	late := b.queue(t, anOrder(signer, 99))[0]
	_, err := n.claim(t, late)
	mustBeRefused(t, "one flight too many", err, txm.SignerFull)
	n.land(t, first)
	n.mustClaim(t, late)
}

// A planner's newer words may change the intent while a claim waits for it: the claim is whole all the same.
func claimRacesRefresh(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	for i := range 12 {
		j := anOrder(signer, byte(i))
		intent := b.queue(t, j)[0]
		var group sync.WaitGroup
		for k := range 4 {
			group.Go(func() {
				if _, err := b.Intents.Enqueue(t.Context(), found(j, uint64(k)*1000)); err != nil {
					t.Error(err)
				}
			})
			group.Go(func() {
				if err := b.Leases.Renew(t.Context(), n.fence, long); err != nil {
					t.Error(err)
				}
			})
		}
		tx, err := n.claim(t, intent)
		group.Wait()
		if err != nil {
			t.Fatal(err)
		}
		n.land(t, tx)
	}
}
