package keeperctl

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

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

	b.want("cancel @ 0 it is stuck", "noted; the sender gives this nonce to a payment to oneself")
	b.want("cancel @ 0", "waiting for its sender already: called off by alice: it is stuck")
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
