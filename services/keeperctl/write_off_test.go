package keeperctl

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// NON-15, the operator's verb on a database and a chain: a signer whose key is lost is written off when nobody has its
// lease. Of what it has in flight, one was mined, one nonce was used by somebody else, and two may still land, a risk
// that the operator has to take. Then the jobs are another signer's, once the state shows them as due.
func TestSignerWriteOff(t *testing.T) {
	b := newBench(t)
	f := b.attend()
	for n := range uint64(4) {
		b.claim(f, n)
	}
	b.send(0)
	b.used(1)
	b.must(b.node.Mine(1))
	mined, lost := b.node.Head(), txm.Receipt{TxHash: chain.Hash(b.pay(3).Hash()), OK: true}
	lost.Block, lost.Outcome = chain.BlockRef{Number: 1, Hash: chain.Hash{9}}, job.Done // a branch that was left
	landed := lost
	landed.TxHash = chain.Hash(b.pay(0).Hash())
	landed.Block = chain.BlockRef{Number: mined.Number.Uint64(), Hash: chain.Hash(mined.Hash())}
	b.must(txstore.NewIntents(b.db).Record(t.Context(), f, landed, lost))
	b.want("write-off @ its disk is gone", "error: nonce 0 of signer @ is used in a block that is not final yet")
	b.must(b.node.Mine(3))
	b.want("write-off @", "its nonce is 2 at final block", "0 "+jobOf(0)+" 1 mined: executed",
		"1 "+jobOf(1)+" 1 used by a transaction that is not ours", "3 "+jobOf(3)+" 1 NOT USED: its bytes may still land",
		"error: nothing was changed")
	b.own.Yes, b.own.Operator = true, "alice"
	b.want("write-off @ its disk is gone", "error: nobody may work a signer that is written off", "sender-a")
	b.must(txstore.NewLeases(b.db).Release(t.Context(), f))
	for _, line := range []string{"write-off @ its disk is gone", "write-off @ 3 its disk is gone"} {
		b.want(line, "error: 2 transactions were signed and their nonces are not used", "for the nonces from 2 on")
	}
	if inFlight, err := txstore.NewIntents(b.db).InFlight(t.Context(), b.signer); err != nil || len(inFlight) != 4 {
		t.Fatalf("a refusal has changed something: %v, %v", inFlight, err)
	}
	b.want("write-off @ 2 its disk is gone", "written off and paused")
	b.want("list", "@ PAUSED", "0 0 written off by alice: its disk is gone")
	b.want("resume @", "error: nonce 1 was written off", "signer resync @")
	for n, want := range []struct {
		state  txm.State
		number string
	}{{txm.FinalOK, "CONSUMED"}, {txm.Foreign, "CONSUMED"}, {txm.Foreign, "SIGNED"}, {txm.Foreign, "SIGNED"}} {
		numbers, err := txstore.NewSigners(b.db).Numbers(t.Context(), b.signer, uint64(n), 1)
		b.must(err)
		if got := numbers[0]; got.Intent != want.state || string(got.State) != want.number {
			t.Errorf("nonce %d is %s, its attempt %s, want %+v", n, got.State, got.Intent, want)
		}
	}
	pgtest.Tamper(t, b.address, `SELECT 1 / count(*) FROM keeper.signer_event WHERE what = 'written_off' AND detail LIKE
		'by alice: its disk is gone; its nonce is 2 at final block % 4 ended, of which 2 may still land'`)
	b.again(3, 1, txm.Cooling)        // as found in a state from before
	b.again(3, 1<<41, txm.NewAttempt) // as found in a later one
}

// jobOf is the job that claim gives a number to.
func jobOf(n uint64) string { return job.OrderID(chain.Hash{byte(n + 1)}, 1) }

// again says a job again, for a signer that is there, as found in a state of the chain's time.
func (b *bench) again(n, foundMs uint64, want txm.Admission) {
	b.t.Helper()
	other, key := chain.Address{77}, chain.Hash{byte(n + 1)}
	b.must(txstore.NewLeases(b.db).Register(b.t.Context(), other, b.node.ChainID().Uint64()))
	j := job.Job{ID: jobOf(n), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, Signer: other}
	j.Evidence.Block.TimeMs = foundMs
	if got, err := txstore.NewIntents(b.db).Enqueue(b.t.Context(), j); err != nil || got != want {
		b.t.Errorf("said again as of %d: %s, %v, want %s", foundMs, got, err, want)
	}
}

// used sends a transaction of the signer that its keeper does not know.
func (b *bench) used(n uint64) {
	b.t.Helper()
	tx, err := types.SignNewTx(b.key, types.LatestSignerForChainID(b.node.ChainID()), &types.LegacyTx{
		Nonce: n, GasPrice: big.NewInt(evmnode.DefaultMinGasPrice), Gas: 21_000, Value: big.NewInt(1),
		To: (*common.Address)(&b.signer),
	})
	b.must(err)
	b.must(b.node.SendTransaction(tx))
}
