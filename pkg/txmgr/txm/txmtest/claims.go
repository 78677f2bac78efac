package txmtest

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// NON-13.
func claimStores(b *bench) {
	n, signer := b.sender()
	for i, intent := range b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3)) {
		tx := n.mustClaim(intent)
		if tx.Nonce != uint64(i) {
			b.Errorf("claim %d got number %d", i, tx.Nonce)
		}
		f := b.inFlight(signer)[i]
		a := f.Newest()
		if f.Intent.State != txm.Signed || f.Intent.Nonce != tx.Nonce || f.Intent.Job.ID != intent.Job.ID ||
			f.Mined != nil || len(f.Txs) != 1 {
			b.Errorf("stored pending transaction %+v", f)
		}
		if a.Hash != tx.Hash || !bytes.Equal(a.Raw, tx.Raw) || a.Nonce != tx.Nonce || a.Gas != tx.Gas ||
			a.Tip != tx.Tip || a.Cap != tx.Cap ||
			a.Kind != txm.Exec || a.Seq != 1 || a.Sends != 0 {
			b.Errorf("stored transaction %+v", a)
		}
	}
	none(b, "still queued", b.heads(signer))
}

// S1, NON-2, LIQ-18: after a takeover the old owner's claim of a number nobody has meets no row that could refuse it;
// the lease row does.
func staleClaim(b *bench) {
	old, signer := b.sender()
	intent := b.queue(anOrder(signer, 1))[0]
	successor := old.succeed()
	_, err := old.claim(intent)
	b.mustBeLost("a former owner's claim", err)
	none(b, "stored by a former owner", b.inFlight(signer))
	successor.mustClaim(intent)
}

// S2: the successor finds the number that its predecessor took, whether or not the predecessor knows that it did.
func takenNumber(b *bench) {
	old, signer := b.sender()
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2))
	taken := old.mustClaim(intents[0]) // and the answer is lost
	successor := old.succeed()
	if successor.cursor.Promise() == taken.Nonce {
		b.Fatal("the taken number is promised again")
	}
	stale := successor.cursor
	stale.Next = taken.Nonce
	naive := &node{bench: b, owner: successor.owner, fence: successor.fence, cursor: stale}
	_, err := naive.claim(intents[1])
	b.mustBeRefused("claiming a taken number", err, txm.CursorMoved)
	b.onlyPending(signer, txm.Signed)
}

// S3: two goroutines of one process, one promised number.
func oneCursor(b *bench) {
	n, signer := b.sender()
	jobs := []job.Job{anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4)}
	var won atomic.Int32
	var group sync.WaitGroup
	for _, intent := range b.queue(jobs...) {
		group.Go(func() {
			twin := *n
			switch _, err := twin.claim(intent); {
			case err == nil:
				won.Add(1)
			case txm.Refused(err) != txm.CursorMoved:
				b.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		b.Errorf("%d claims of one number succeeded", won.Load())
	}
	b.onlyPending(signer, txm.Signed)
}

// S4: what was mined is given to nobody, not even as a gap.
func consumedStays(b *bench) {
	n, signer := b.sender()
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2))
	tx := n.mustClaim(intents[0])
	n.land(tx)
	n = n.succeed()
	if n.cursor.Next != tx.Nonce+1 || len(n.cursor.Released) != 0 {
		b.Fatalf("the successor's cursor is %+v", n.cursor)
	}
	gap := one(intents[1], sign(intents[1].ID, signer, tx.Nonce), n.cursor.Next)
	b.mustBeRefused("claiming a consumed number as a gap", n.Intents.Claim(b.Context(), n.fence, gap), txm.CursorMoved)
	n.mustClaim(intents[1])
}

// S13, NON-13: a signed number waits for the chain, for as long as it takes. The successor adopts it with its bytes.
func nothingByTime(b *bench) {
	n, signer := b.sender()
	tx := n.mustClaim(b.queue(anOrder(signer, 1))[0])
	n.expire()
	n = b.node(signer)
	if n.cursor.Promise() != tx.Nonce+1 {
		b.Errorf("the successor is promised %d", n.cursor.Promise())
	}
	if adopted := b.onlyPending(signer, txm.Signed).Newest(); adopted.Hash != tx.Hash ||
		!bytes.Equal(adopted.Raw, tx.Raw) {
		b.Errorf("adopted %+v", adopted)
	}
}

// NON-3: the commit whose answer was lost is found by its intent.
func lookUp(b *bench) {
	n, signer := b.sender()
	intent := b.queue(anOrder(signer, 1))[0]
	if hash, err := b.Intents.Claimed(b.Context(), intent.ID); err != nil || !hash.IsZero() {
		b.Errorf("before the claim: %s, %v", hash, err)
	}
	tx := n.mustClaim(intent)
	if hash, err := b.Intents.Claimed(b.Context(), intent.ID); err != nil || hash != tx.Hash {
		b.Errorf("after the claim: %s, %v", hash, err)
	}
	_, err := n.claim(intent)
	b.mustBeRefused("claiming once more", err, txm.Moved)
}

// LIQ-6: also when the claims come from several senders at once.
func oneLiquidationPerAccount(b *bench) {
	const senders = 4
	nodes, intents := make([]*node, 0, senders), make([]*txm.Intent, 0, senders)
	for i := range senders {
		signer := b.signer()
		nodes = append(nodes, b.node(signer))
		intents = append(intents, b.queue(aLiquidation(signer, 1, byte(i)))...)
	}
	errs := b.claimAll(nodes, intents)
	won := slices.Index(errs, nil)
	for i, err := range errs {
		if i != won && txm.Refused(err) != txm.AccountBusy && txm.Refused(err) != txm.KeeperFull {
			b.Errorf("claim %d: %v", i, err)
		}
	}
	if won < 0 || slices.Contains(errs[won+1:], nil) {
		b.Fatalf("claims ended with %v, want one success", errs)
	}
	other := (won + 1) % len(nodes)
	_, err := nodes[other].claim(intents[other])
	b.mustBeRefused("a second liquidation of the account", err, txm.AccountBusy)
	nodes[won].land(sign(intents[won].ID, nodes[won].fence.Signer, 0))
	nodes[other].mustClaim(intents[other])
}

// An order that its owner changes while it is being executed is another job. Executing both would burn the gas of the
// second (NON-3).
func oneTransactionPerOrder(b *bench) {
	n, signer := b.sender()
	before, after := anOrder(signer, 1), anOrder(signer, 1)
	after.ID = job.OrderID(after.Key, 2)
	intents := b.queue(before, after)
	tx := n.mustClaim(intents[0])
	_, err := n.claim(intents[1])
	b.mustBeRefused("the changed order while the first is in flight", err, txm.KeyBusy)
	n.land(tx)
	n.mustClaim(intents[1])
}

// What is left to deleverage is known when the one before has landed, in whichever sender's hands it is. Another side
// of the market has nothing to do with it.
func oneDeleveragingOfASide(b *bench) {
	one, two := b.signer(), b.signer()
	first, second := b.node(one), b.node(two)
	adl := func(signer chain.Address, position byte, isLong bool) job.Job {
		j := aLiquidation(signer, position, position)
		j.ID, j.Kind, j.Class, j.Market, j.IsLong = job.AdlID(j.Key, 1), job.Adl, job.ClassAdl, chain.Address{7}, isLong
		return j
	}
	update := adl(one, 4, true)
	update.ID, update.Kind = job.AdlStateID(update.Market, true, 1), job.AdlState
	mine, theirs := b.queue(adl(one, 1, true), adl(one, 2, false), update), b.queue(adl(two, 3, true))
	tx := first.mustClaim(mine[0])
	_, err := second.claim(theirs[0])
	b.mustBeRefused("a second one of the side", err, txm.SideBusy)
	none(b, "shown although it would be refused", b.heads(two))
	if heads := b.heads(one); len(heads) != 1 || heads[0].ID != mine[1].ID {
		b.Errorf("to be done: %+v, want the other side's", heads)
	}
	first.mustClaim(mine[1])
	first.land(tx)
	second.mustClaim(theirs[0])
	_, err = first.claim(mine[2])
	b.mustBeRefused("the update of a side that is being deleveraged", err, txm.SideBusy)
}

func (b *bench) claimAll(nodes []*node, intents []*txm.Intent) []error {
	b.Helper()
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { _, errs[i] = n.claim(intents[i]) })
	}
	group.Wait()
	return errs
}

// LIQ-6: counted over all signers, freed by the end of one, and not in the way of orders.
func liquidationLimit(b *bench) {
	signers := []chain.Address{b.signer(), b.signer()}
	nodes := []*node{b.node(signers[0]), b.node(signers[1])}
	var first txm.SignedTx
	for i := range limits.Liquidations {
		tx := nodes[i%2].mustClaim(b.queue(aLiquidation(signers[i%2], byte(i), 0))[0])
		if i == 0 {
			first = tx
		}
	}
	late := b.queue(aLiquidation(signers[1], 99, 0))[0]
	_, err := nodes[1].claim(late)
	b.mustBeRefused("one liquidation too many", err, txm.KeeperFull)
	nodes[1].mustClaim(b.queue(anOrder(signers[1], 1))[0])
	nodes[0].land(first)
	nodes[1].mustClaim(late)
}

func pendingLimit(b *bench) {
	n, signer := b.sender()
	var first txm.SignedTx
	for i := range limits.Signer {
		if tx := n.mustClaim(b.queue(anOrder(signer, byte(i)))[0]); i == 0 {
			first = tx
		}
	}
	late := b.queue(anOrder(signer, 99))[0]
	_, err := n.claim(late)
	b.mustBeRefused("one pending transaction too many", err, txm.SignerFull)
	n.land(first)
	n.mustClaim(late)
}

// A planner's newer words may change the intent while a claim waits for it: the claim is whole all the same.
func claimRacesRefresh(b *bench) {
	n, signer := b.sender()
	for i := range 12 {
		j := anOrder(signer, byte(i))
		intent := b.queue(j)[0]
		var group sync.WaitGroup
		for k := range 4 {
			group.Go(func() {
				if _, err := b.Intents.Enqueue(b.Context(), found(j, uint64(k)*1000)); err != nil {
					b.Error(err)
				}
			})
			group.Go(func() {
				if err := b.Leases.Renew(b.Context(), n.fence, long); err != nil {
					b.Error(err)
				}
			})
		}
		tx, err := n.claim(intent)
		group.Wait()
		if err != nil {
			b.Fatal(err)
		}
		n.land(tx)
	}
}
