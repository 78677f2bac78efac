package txmtest

import (
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// pending demands how many of a signer's places are taken.
func (b *bench) pending(t *testing.T, signer chain.Address, want int) {
	t.Helper()
	if got, err := b.Intents.Pending(t.Context(), signer); err != nil || got != want {
		t.Errorf("%d places are taken, %v; want %d", got, err, want)
	}
}

// LIQ-6: a transaction takes its place until it is mined, not until it is final. It stays in flight all the same, and
// what is unique in flight stays so.
func minedFreesPlaces(b *bench) {
	t := b.t
	ctx, signer := t.Context(), b.signer(t)
	n := b.node(t, signer)
	again := b.queue(t, aLiquidation(signer, 0, 1))[0]
	var first job.Job
	var landed txm.SignedTx
	for i := range limits.Liquidations {
		j := aLiquidation(signer, byte(i), 0)
		tx := n.mustClaim(t, b.queue(t, j)[0])
		if i == 0 {
			first, landed = j, tx
		}
	}
	for i := range limits.Signer - limits.Liquidations {
		n.mustClaim(t, b.queue(t, anOrder(signer, byte(i)))[0])
	}
	b.pending(t, signer, limits.Signer)
	late := b.queue(t, aLiquidation(signer, 99, 0))[0]
	if _, err := n.claim(t, late); txm.Refused(err) != txm.SignerFull && txm.Refused(err) != txm.KeeperFull {
		t.Errorf("one too many: %v", err)
	}
	must(t, n.Intents.Record(ctx, n.fence, minedAt(landed, 5, 0))) // one endpoint's word frees nothing
	b.pending(t, signer, limits.Signer)
	must(t, n.Intents.MinedBelow(ctx, n.fence, landed.Nonce+1))
	b.pending(t, signer, limits.Signer-1)
	if flights := b.flights(t, signer); len(flights) != limits.Signer || flights[0].Intent.Job.ID != first.ID {
		t.Errorf("%d in flight, want all %d", len(flights), limits.Signer)
	}
	_, err := n.claim(t, again)
	mustBeRefused(t, "a second liquidation of an account whose first is not final", err, txm.AccountBusy)
	n.mustClaim(t, late)
	b.pending(t, signer, limits.Signer)
	// its end frees nothing a second time
	must(t, n.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: minedAt(landed, 5, 0), Rest: settled}))
	b.pending(t, signer, limits.Signer)
	old := *n
	n.succeed(t)
	mustBeLost(t, "a former owner's word", old.Intents.MinedBelow(ctx, old.fence, landed.Nonce+9))
	b.pending(t, signer, limits.Signer)
}

// What a reorg takes back counts again, beyond the limits if it has to: nothing more is claimed until there is room.
func reorgTakesPlaces(b *bench) {
	t := b.t
	ctx, signer := t.Context(), b.signer(t)
	n := b.node(t, signer)
	var txs []txm.SignedTx
	claim := func(from int) {
		for i := range limits.Liquidations {
			txs = append(txs, n.mustClaim(t, b.queue(t, aLiquidation(signer, byte(from+i), 0))[0]))
		}
	}
	claim(0)
	must(t, n.Intents.MinedBelow(ctx, n.fence, n.cursor.Next))
	b.pending(t, signer, 0)
	claim(100)
	must(t, n.Intents.MinedBelow(ctx, n.fence, n.cursor.Next-3)) // the first of them are mined as well
	b.pending(t, signer, 3)
	must(t, n.Intents.MinedBelow(ctx, n.fence, 5)) // and then all blocks are gone but those of the first five
	b.pending(t, signer, 2*limits.Liquidations-5)
	late := b.queue(t, aLiquidation(signer, 200, 0))[0]
	for number := range uint64(2*limits.Liquidations - 5 - limits.Liquidations + 1) {
		must(t, n.Intents.MinedBelow(ctx, n.fence, 5+number))
		_, err := n.claim(t, late)
		mustBeRefused(t, "a liquidation while as many are pending again", err, txm.KeeperFull)
		if heads := b.headsWithin(t, signer, limits.Liquidations); len(heads) != 0 {
			t.Errorf("%d below %d are shown although they would be refused", len(heads), 5+number)
		}
	}
	n.land(t, txs[2*limits.Liquidations-1]) // the end of one frees a place as well
	n.mustClaim(t, late)
}

func (b *bench) headsWithin(t *testing.T, signer chain.Address, liquidations int) []txm.Intent {
	t.Helper()
	heads, err := b.Intents.Heads(t.Context(), signer, txm.Pick{Limit: 1000, Liquidations: liquidations})
	must(t, err)
	return heads
}

// Some places of a signer are taken by liquidations and deleveragings only, however much else waits; and whoever looks
// for what may take them finds nothing else.
func reservedPlaces(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	kept := txm.Limits{Signer: 6, Reserved: 2, Liquidations: 10}
	claim := func(intents ...*txm.Intent) error {
		batch, after := txm.Batch{Cursor: n.cursor.Next, Limits: kept}, n.cursor
		for _, i := range intents {
			tx := sign(i.ID, signer, after.Promise())
			batch.Claims = append(batch.Claims, txm.Claim{Intent: i.ID, Kind: i.Job.Kind, Tx: tx})
			after = after.Taken(tx.Nonce)
		}
		err := n.Intents.Claim(t.Context(), n.fence, batch)
		if err == nil {
			n.cursor = after
		}
		return err
	}
	orders := b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3), anOrder(signer, 4),
		anOrder(signer, 5))
	must(t, claim(orders[:4]...))
	mustBeRefused(t, "an order in a kept place", claim(orders[4]), txm.SignerFull)
	urgent := b.queue(t, aLiquidation(signer, 1, 0), aLiquidation(signer, 2, 0), aLiquidation(signer, 3, 0))
	mustBeRefused(t, "an order behind a liquidation", claim(urgent[0], orders[4]), txm.SignerFull)
	heads, err := b.Intents.Heads(t.Context(), signer, txm.Pick{Limit: 9, Urgent: true})
	if err != nil || len(heads) != len(urgent) {
		t.Errorf("%d urgent heads, %v; want %d", len(heads), err, len(urgent))
	}
	for _, h := range heads {
		if h.Job.Kind != job.Liquidation {
			t.Errorf("%s is not urgent", h.Job.ID)
		}
	}
	must(t, claim(urgent[0], urgent[1]))
	mustBeRefused(t, "a liquidation beyond all places", claim(urgent[2]), txm.SignerFull)
	must(t, n.Intents.MinedBelow(t.Context(), n.fence, 2))
	mustBeRefused(t, "an order where liquidations hold the others", claim(orders[4]), txm.SignerFull)
	must(t, claim(urgent[2]))
	// Where the key is used elsewhere, the chain is ahead of what was given out here.
	must(t, n.Intents.MinedBelow(t.Context(), n.fence, n.cursor.Next+9))
	many := b.queue(t, anOrder(signer, 6), anOrder(signer, 7), anOrder(signer, 8), anOrder(signer, 9))
	mustBeRefused(t, "more orders at once than they have places", claim(append(many, orders[4])...), txm.SignerFull)
}

// Several signers that claim liquidations in the same moment get places of the keeper's, as long as there are enough.
func sharedPlaces(b *bench) {
	t := b.t
	const senders, each = 4, 2
	nodes := make([]*node, senders)
	batches := make([]txm.Batch, senders)
	for i := range nodes {
		signer := b.signer(t)
		nodes[i] = b.node(t, signer)
		batches[i] = txm.Batch{Limits: limits}
		for k := range each {
			intent := b.queue(t, aLiquidation(signer, byte(10*i+k), 0))[0]
			batches[i].Claims = append(batches[i].Claims, txm.Claim{Intent: intent.ID, Kind: intent.Job.Kind,
				Tx: sign(intent.ID, signer, uint64(k))})
		}
	}
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			if err := n.Intents.Claim(t.Context(), n.fence, batches[i]); err != nil {
				t.Errorf("signer %d: %v", i, err)
			}
		})
	}
	group.Wait()
}
