package txmtest

import (
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// pending demands how many of a signer's slots are taken.
func (b *bench) pending(signer chain.Address, want int) {
	b.Helper()
	if got, err := b.Intents.Pending(b.Context(), signer); err != nil || got != want {
		b.Errorf("%d slots are taken, %v; want %d", got, err, want)
	}
}

// LIQ-6: a transaction takes its place until it is mined, not until it is final. It stays in flight all the same, and
// its key stays its own. LIQ-20: the next liquidation of its account waits for that block, and for no longer.
func minedFreesSlots(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	again := b.queue(aLiquidation(signer, 0, 1))[0]
	var first job.Job
	var landed txm.SignedTx
	for i := range limits.Liquidations {
		j := aLiquidation(signer, byte(i), 0)
		tx := n.mustClaim(b.queue(j)[0])
		if i == 0 {
			first, landed = j, tx
		}
	}
	for i := range limits.Signer - limits.Liquidations {
		n.mustClaim(b.queue(anOrder(signer, byte(i)))[0])
	}
	b.pending(signer, limits.Signer)
	late := b.queue(aLiquidation(signer, 99, 0))[0]
	if _, err := n.claim(late); txm.Refused(err) != txm.SignerFull && txm.Refused(err) != txm.KeeperFull {
		b.Errorf("one too many: %v", err)
	}
	b.must(n.Intents.Record(ctx, n.fence, minedAt(landed, 5, 0))) // one endpoint's word frees nothing
	b.pending(signer, limits.Signer)
	if _, err := n.claim(again); txm.Refused(err) == "" {
		b.Errorf("a second liquidation of an account whose first is not mined: %v", err)
	}
	b.must(n.Intents.MinedBelow(ctx, n.fence, landed.Nonce+1))
	b.pending(signer, limits.Signer-1)
	if inFlight := b.inFlight(signer); len(inFlight) != limits.Signer || inFlight[0].Intent.Job.ID != first.ID {
		b.Errorf("%d in flight, want all %d", len(inFlight), limits.Signer)
	}
	n.mustClaim(again)
	b.pending(signer, limits.Signer)
	b.must(n.Intents.MinedBelow(ctx, n.fence, landed.Nonce)) // a reorg: both are under way
	b.pending(signer, limits.Signer+1)
	b.must(n.Intents.MinedBelow(ctx, n.fence, landed.Nonce+1))
	b.pending(signer, limits.Signer)
	// its end frees nothing a second time
	b.must(n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: minedAt(landed, 5, 0), Rest: settled}))
	b.pending(signer, limits.Signer)
	old := *n
	n.succeed()
	b.mustBeLost("a former owner's word", old.Intents.MinedBelow(ctx, old.fence, landed.Nonce+9))
	b.pending(signer, limits.Signer)
}

// What a reorg takes back counts again, beyond the limits if it has to: nothing more is claimed until there is room.
func reorgTakesSlots(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	var txs []txm.SignedTx
	claim := func(from int) {
		for i := range limits.Liquidations {
			txs = append(txs, n.mustClaim(b.queue(aLiquidation(signer, byte(from+i), 0))[0]))
		}
	}
	claim(0)
	b.must(n.Intents.MinedBelow(ctx, n.fence, n.cursor.Next))
	b.pending(signer, 0)
	claim(100)
	b.must(n.Intents.MinedBelow(ctx, n.fence, n.cursor.Next-3)) // the first of them are mined as well
	b.pending(signer, 3)
	b.must(n.Intents.MinedBelow(ctx, n.fence, 5)) // and then all blocks are gone but those of the first five
	b.pending(signer, 2*limits.Liquidations-5)
	late := b.queue(aLiquidation(signer, 200, 0))[0]
	for number := range uint64(2*limits.Liquidations - 5 - limits.Liquidations + 1) {
		b.must(n.Intents.MinedBelow(ctx, n.fence, 5+number))
		_, err := n.claim(late)
		b.mustBeRefused("a liquidation while as many are pending again", err, txm.KeeperFull)
		if heads := b.headsWithin(signer, limits.Liquidations); len(heads) != 0 {
			b.Errorf("%d below %d are shown although they would be refused", len(heads), 5+number)
		}
	}
	n.land(txs[2*limits.Liquidations-1]) // the end of one frees a place as well
	n.mustClaim(late)
}

func (b *bench) headsWithin(signer chain.Address, liquidations int) []txm.Intent {
	b.Helper()
	heads, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Limit: 1000, Liquidations: liquidations})
	b.must(err)
	return heads
}

// Some slots of a signer are taken by liquidations and deleveragings only, however much else waits; and whoever looks
// for what may take them finds nothing else.
func reservedSlots(b *bench) {
	n, signer := b.sender()
	kept := txm.Limits{Signer: 6, Reserved: 2, Liquidations: 10}
	claim := func(intents ...*txm.Intent) error {
		batch, after := txm.Batch{Cursor: n.cursor.Next, Limits: kept}, n.cursor
		for _, i := range intents {
			tx := sign(i.ID, signer, after.Promise())
			batch.Claims = append(batch.Claims, txm.Claim{Intent: i.ID, Kind: i.Job.Kind, Tx: tx})
			after = after.Taken(tx.Nonce)
		}
		err := n.Intents.Claim(b.Context(), n.fence, batch)
		if err == nil {
			n.cursor = after
		}
		return err
	}
	orders := b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4),
		anOrder(signer, 5))
	b.must(claim(orders[:4]...))
	b.mustBeRefused("an order in a kept place", claim(orders[4]), txm.SignerFull)
	urgent := b.queue(aLiquidation(signer, 1, 0), aLiquidation(signer, 2, 0), aLiquidation(signer, 3, 0))
	b.mustBeRefused("an order behind a liquidation", claim(urgent[0], orders[4]), txm.SignerFull)
	heads, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Limit: 9, Urgent: true})
	if err != nil || len(heads) != len(urgent) {
		b.Errorf("%d urgent heads, %v; want %d", len(heads), err, len(urgent))
	}
	for _, h := range heads {
		if h.Job.Kind != job.Liquidation {
			b.Errorf("%s is not urgent", h.Job.ID)
		}
	}
	b.must(claim(urgent[0], urgent[1]))
	b.mustBeRefused("a liquidation beyond all slots", claim(urgent[2]), txm.SignerFull)
	b.must(n.Intents.MinedBelow(b.Context(), n.fence, 2))
	b.mustBeRefused("an order where liquidations hold the others", claim(orders[4]), txm.SignerFull)
	b.must(claim(urgent[2]))
	// Where the key is used elsewhere, the chain is ahead of what was given out here.
	b.must(n.Intents.MinedBelow(b.Context(), n.fence, n.cursor.Next+9))
	many := b.queue(anOrder(signer, 6), anOrder(signer, 7), anOrder(signer, 8), anOrder(signer, 9))
	b.mustBeRefused("more orders at once than they have slots", claim(append(many, orders[4])...), txm.SignerFull)
}

// Several signers that claim liquidations in the same moment get slots of the keeper's, as long as there are enough.
func sharedSlots(b *bench) {
	const senders, each = 4, 2
	nodes := make([]*node, senders)
	batches := make([]txm.Batch, senders)
	for i := range nodes {
		signer := b.signer()
		nodes[i] = b.node(signer)
		batches[i] = txm.Batch{Limits: limits}
		for k := range each {
			intent := b.queue(aLiquidation(signer, byte(10*i+k), 0))[0]
			batches[i].Claims = append(batches[i].Claims, txm.Claim{Intent: intent.ID, Kind: intent.Job.Kind,
				Tx: sign(intent.ID, signer, uint64(k))})
		}
	}
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			if err := n.Intents.Claim(b.Context(), n.fence, batches[i]); err != nil {
				b.Errorf("signer %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// NON-15: what a signer that can sign nothing has in flight takes no place of the keeper's liquidations from others,
// and does again as soon as it can.
func outKeepsNoSlots(b *bench) {
	ctx := b.Context()
	n, signer := b.sender()
	for i := range limits.Liquidations {
		n.mustClaim(b.queue(aLiquidation(signer, byte(i), 0))[0])
	}
	other, by := b.sender()
	waiting := b.queue(aLiquidation(by, 97, 0), aLiquidation(by, 98, 0), aLiquidation(by, 99, 0))
	full := func(what string) {
		b.Helper()
		_, err := other.claim(waiting[0])
		b.mustBeRefused(what, err, txm.KeeperFull)
		none(b, "heads without a place", b.headsWithin(by, limits.Liquidations))
	}
	full("one too many")
	b.must(n.Intents.Unable(ctx, n.fence, "its account is locked", time.Hour))
	if heads := b.headsWithin(by, limits.Liquidations); len(heads) != len(waiting) {
		b.Errorf("%d of %d heads are shown", len(heads), len(waiting))
	}
	other.mustClaim(waiting[0])
	_, err := n.claim(b.queue(aLiquidation(signer, 50, 0))[0])
	b.mustBeRefused("one more of its own", err, txm.KeeperFull)
	b.must(n.Intents.Unable(ctx, n.fence, "", time.Hour))
	waiting = waiting[1:]
	full("one too many of a signer that can sign again")
	b.must(n.Intents.Pause(ctx, n.fence, "its key is being moved"))
	other.mustClaim(waiting[0])
	old := *n
	n.succeed()
	b.mustBeLost("a former owner's word", old.Intents.Unable(ctx, old.fence, "", time.Hour))
}
