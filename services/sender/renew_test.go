package sender

import (
	"context"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// impatient raises prices every two blocks.
func (s *site) impatient() {
	s.cfg.Sender.Fee.Order.Patience = 2
}

// transactions waits until the only pending transaction has so many.
func (s *site) transactions(by chain.Address, n int) (f txm.PendingTx) {
	s.t.Helper()
	s.eventually("the transaction is replaced", func(ctx context.Context) bool {
		inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
		if err != nil || len(inFlight) != 1 || len(inFlight[0].Txs) < n {
			return false
		}
		f = inFlight[0]
		return true
	})
	return f
}

// mustAllBeStored demands that nothing was broadcast that the pending transaction did not have in store (NON-13). The
// pending transaction may have got more since.
func (s *site) mustAllBeStored(f txm.PendingTx, broadcast [][]byte) {
	s.t.Helper()
	for i, a := range f.Txs {
		if i > 0 && (a.Tip*100 < f.Txs[i-1].Tip*110 || a.Cap*100 < f.Txs[i-1].Cap*110 ||
			a.Nonce != f.Txs[0].Nonce) {
			s.t.Errorf("transaction %d: %d after %d, at nonce %d", a.Seq, a.Cap, f.Txs[i-1].Cap, a.Nonce)
		}
	}
	for _, raw := range broadcast[:min(len(broadcast), len(f.Txs))] {
		if !slices.Contains(f.Hashes(), chain.Keccak256(raw)) {
			s.t.Errorf("%s was broadcast and is not stored", chain.Keccak256(raw))
		}
	}
}

// Raised at the same nonce until it is mined; one transaction, one job.
func raised(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.impatient()
	before, w := s.nonce(by), &witness{}
	w.swallows.Store(true)
	s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	f := s.transactions(by, 3)
	w.swallows.Store(false)
	s.mustEndOnce(j, by, before)
	s.mustAllBeStored(f, w.broadcasts())
	if r := s.result(j.ID, 1); r.GasPrice < f.Txs[2].Cap {
		t.Errorf("mined at %d, though %d was offered", r.GasPrice, f.Txs[2].Cap)
	}
}

// What was mined is what counts, whichever of the transactions it is.
func cheaperMined(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.impatient()
	before, w := s.nonce(by), &witness{}
	w.swallows.Store(true)
	s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	f := s.transactions(by, 2)
	var first types.Transaction
	if err := first.UnmarshalBinary(f.Txs[0].Raw); err != nil {
		t.Fatal(err)
	}
	s.mined(first.Hash(), s.Client.SendTransaction(t.Context(), &first))
	w.swallows.Store(false)
	s.mustEndOnce(j, by, before)
	if r := s.result(j.ID, 1); r.TxHash != f.Txs[0].Hash {
		t.Errorf("the result names %s, mined was %s", r.TxHash, f.Txs[0].Hash)
	}
}

// Nodes that find a transaction too cheap get a dearer one at once.
func tooCheap(answer string) func(*testing.T, *site, chain.Address, secret.String) {
	return func(t *testing.T, s *site, by chain.Address, key secret.String) {
		before, w := s.nonce(by), &witness{}
		j := s.orderJob(s.marketOrder(100), by)
		if err := s.Node().
			Inject(evmnode.Fault{Method: "eth_sendRawTransaction", Times: 1, Error: answer}); err != nil {
			t.Fatal(err)
		}
		s.sender([]secret.String{key}, w.on)
		s.say(j)
		s.mustEndOnce(j, by, before)
		seen := map[chain.Hash]bool{}
		for _, raw := range w.broadcasts() {
			seen[chain.Keccak256(raw)] = true
		}
		if len(seen) != 2 || seen[s.result(j.ID, 1).TxHash] == false {
			t.Errorf("%d different transactions were broadcast", len(seen))
		}
	}
}

// A job that somebody else has done costs a payment to oneself, and not a losing execution.
func cancelledInFlight(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.impatient()
	before, w := s.nonce(by), &witness{}
	w.mute.Store(true)
	s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	_, other := s.keeper(11)
	s.rival(w.broadcasts()[0], other)
	s.eventually("the job is given up", func(ctx context.Context) bool {
		inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
		return err == nil && len(inFlight) == 1 && inFlight[0].Leaving()
	})
	w.mute.Store(false)
	r := s.result(j.ID, 1)
	if (r.Outcome != job.LostRace && r.Outcome != job.SkippedDone) || r.GasUsed != txm.EmptyGas || r.Nonce != before {
		t.Errorf("result %+v", r)
	}
	if got := s.nonce(by); got != before+1 {
		t.Errorf("%d transactions", got-before)
	}
}
