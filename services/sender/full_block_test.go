package sender

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// What frees a nonce is a payment once blocks have a lane for payments, and so lands while dearer calls fill every
// block; before that it is of nothing.
func freedInFullBlocks(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.impatient()
	_, rival := s.keeper(11)
	for i, c := range []struct {
		lane uint64 // percent
		wei  int64
	}{{0, 0}, {99, 1}} {
		w := &witness{}
		w.mute.Store(true)
		r := s.sender([]secret.String{key}, w.on)
		j := s.orderJob(s.marketOrder(100+int64(i)), by)
		s.say(j)
		s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
		s.rival(w.broadcasts()[0], rival)
		filler := s.fill(c.lane)
		s.eventually("the job is given up", func(ctx context.Context) bool {
			inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
			return err == nil && len(inFlight) == 1 && inFlight[0].Leaving()
		})
		w.mute.Store(false)
		o := s.result(j.ID, 1)
		if (o.Outcome != job.LostRace && o.Outcome != job.SkippedDone) || o.GasUsed != txm.EmptyGas {
			t.Errorf("result %+v", o)
		}
		tx, _, err := s.chain.TransactionByHash(t.Context(), common.Hash(o.TxHash))
		if err != nil {
			t.Fatal(err)
		}
		if tx.Value().Cmp(big.NewInt(c.wei)) != 0 || len(tx.Data()) > 0 || *tx.To() != common.Address(by) {
			t.Errorf("a nonce is freed by %s wei to %s", tx.Value(), tx.To())
		}
		if c.lane > 0 && s.nonce(filler.account) >= filler.last {
			t.Error("blocks were not full any more: the test shows nothing")
		}
		r.stop()
	}
}

// filling is an account whose calls fill blocks.
type filling struct {
	account chain.Address
	last    uint64 // its next number once all of them are mined
}

// fill keeps so many percent of every block for payments, and has calls of another account fill what is left, one a
// block, at a price that none of ours offers.
func (s *site) fill(lane uint64) (f filling) {
	s.t.Helper()
	node := s.devnet.Node()
	if err := node.SetPaymentLane(lane); err != nil {
		s.t.Fatal(err)
	}
	if lane == 0 {
		return f
	}
	s.t.Cleanup(func() { _ = node.SetPaymentLane(0) })
	_, hex := s.keeper(10)
	private, err := crypto.HexToECDSA(hex.Reveal())
	if err != nil {
		s.t.Fatal(err)
	}
	f.account = chain.Address(crypto.PubkeyToAddress(private.PublicKey))
	f.last = s.nonce(f.account)
	left := node.Head().GasLimit / 100 * (100 - lane)
	price := big.NewInt(20 * txm.Gwei)
	for range 120 {
		signed, err := types.SignNewTx(private, types.LatestSignerForChainID(node.ChainID()), &types.DynamicFeeTx{
			ChainID: node.ChainID(), Nonce: f.last, GasTipCap: price, GasFeeCap: price,
			Gas: left - txm.EmptyGas/2, Data: []byte{0xfe}, // a contract whose creation burns all its gas
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if err := node.SendTransaction(signed); err != nil {
			s.t.Fatal(err)
		}
		f.last++
	}
	return f
}
