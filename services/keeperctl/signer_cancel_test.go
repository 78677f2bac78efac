package keeperctl

import (
	"context"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// obey acts as the sender does that holds the lease: it frees what was called off.
func (b *bench) obey(ctx context.Context, f lease.Fence) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		inFlight, err := txstore.NewIntents(b.db).InFlight(ctx, b.signer)
		for _, pending := range inFlight {
			if err == nil && pending.Intent.CalledOff != "" && !pending.Leaving() {
				raw := []byte("a payment to oneself")
				_ = txstore.NewIntents(b.db).Replace(ctx, f, txm.Replacement{
					Intent: pending.Intent.ID, After: pending.Newest().Hash, Kind: txm.Cancel,
					Tx: txm.SignedTx{Nonce: pending.Intent.Nonce, Gas: txm.EmptyGas, Tip: 2, Cap: 2,
						Hash: chain.Keccak256(raw), Raw: raw},
					Cancel: txm.Verdict{Outcome: job.Withdrawn, Reason: pending.Intent.CalledOff},
				})
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// An operator gives a number back that is in flight, and nothing else.
func TestSignerCancel(t *testing.T) {
	b := newBench(t)
	b.own.Operator = "alice"
	f := b.attend()
	b.claim(f, 0)
	b.claim(f, 1)
	b.want("cancel @ 0 stuck", "nonce 0: SIGNED of "+job.OrderID(chain.Hash{1}, 1)+", 1 transactions signed",
		"lease: sender-a", "error: nothing was changed",
		"--keeperctl.yes")
	inFlight, err := txstore.NewIntents(b.db).InFlight(t.Context(), b.signer)
	b.must(err)
	if inFlight[0].Intent.CalledOff != "" {
		t.Fatal("what was only shown was done")
	}
	b.own.Yes = true
	b.want("cancel @ zero", `error: "zero" is no nonce`)
	b.want("cancel @ 7", "error: nonce 7 of signer @ was given to no job")
	b.want("cancel 0x0000000000000000000000000000000000000001 0", "is not known here")

	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sender.Go(func() { b.obey(ctx, f) })
	b.want("cancel @ 0 it is stuck", "the sender has signed transaction 2 at this nonce, a payment to oneself")
	stop()
	sender.Wait()
	b.want("cancel @ 0", "is being freed already: called off by alice: it is stuck")
	b.must(txstore.NewLeases(b.db).Release(t.Context(), f))
	b.want("cancel @ 1", "noted; nobody has the lease of this signer")
	b.want("cancel @ 1", "error: nonce 1 of signer @ is waiting for its sender already: called off by alice: no "+
		"reason given")
}

// What the chain has is not called off.
func TestSignerCancelOfWhatIsMined(t *testing.T) {
	b := newBench(t)
	b.own.Yes = true
	f := b.attend()
	b.claim(f, 0)
	tx := b.pay(0)
	r := txm.Receipt{TxHash: chain.Hash(tx.Hash()), Block: chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, OK: true,
		Outcome: job.Done}
	b.must(txstore.NewIntents(b.db).Record(t.Context(), f, r))
	b.want("cancel @ 0", "error: the transaction at nonce 0 of signer @ is in a block")
	b.must(txstore.NewIntents(b.db).Finish(t.Context(), f, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{}}))
	b.want("cancel @ 0", "error: nonce 0 of signer @ is not in flight: its attempt ended as FINAL_OK")
}
