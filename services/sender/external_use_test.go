package sender

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// NON-1: the same key in two regions, each with a database that knows the signer. What the other one sends shows on the
// chain, also while this one has nothing to do: the signer is paused, people are told, and no job is tried first.
func TestSameKeyInTwoRegions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	s.mustExecute(by, start)
	if reason, err := sn.intents.Paused(t.Context(), by); err != nil || reason != "" {
		t.Fatalf("paused before anybody else has sent: %s, %v", reason, err)
	}
	s.payFrom(s.private(key), start+1)
	s.eventually("the signer is paused", func(ctx context.Context) bool {
		reason, err := sn.intents.Paused(ctx, by)
		return err == nil && strings.Contains(reason, "only those below")
	})
	late := s.orderJob(s.marketOrder(100), by)
	s.say(late)
	s.eventually("a job waits", func(ctx context.Context) bool {
		depth, err := sn.intents.Depth(ctx, by)
		return err == nil && depth == 1
	})
	if got := s.nonce(by); got != start+2 {
		t.Errorf("%d transactions after the other's", got-start-2)
	}
}

// private is a key for who signs without a sender.
func (s *site) private(key secret.String) *ecdsa.PrivateKey {
	s.t.Helper()
	private, err := crypto.HexToECDSA(key.Reveal())
	if err != nil {
		s.t.Fatal(err)
	}
	return private
}

// payFrom has an account pay itself nothing, as a process elsewhere does that has its key.
func (s *site) payFrom(key *ecdsa.PrivateKey, nonce uint64) {
	s.t.Helper()
	to, chainID := crypto.PubkeyToAddress(key.PublicKey), new(big.Int).SetUint64(s.cfg.Keeper.ChainID)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, To: &to, Gas: 21_000, GasTipCap: big.NewInt(5e9), GasFeeCap: big.NewInt(5e9)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.mined(tx.Hash(), s.Client.SendTransaction(s.t.Context(), tx))
}

// rival signs what a sender signed with another key, at that key's own nonce, and sends it.
func (s *site) rival(raw []byte, key secret.String) {
	s.t.Helper()
	private := s.private(key)
	var ours types.Transaction
	if err := ours.UnmarshalBinary(raw); err != nil {
		s.t.Fatal(err)
	}
	theirs := &types.DynamicFeeTx{
		ChainID: ours.ChainId(), Nonce: s.nonce(chain.Address(crypto.PubkeyToAddress(private.PublicKey))),
		GasTipCap: ours.GasTipCap(),
		GasFeeCap: ours.GasFeeCap(), Gas: ours.Gas(), To: ours.To(), Data: ours.Data(),
	}
	signed, err := types.SignNewTx(private, types.LatestSignerForChainID(ours.ChainId()), theirs)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mined(signed.Hash(), s.Client.SendTransaction(s.t.Context(), signed))
}

// TIER-17: the chain arbitrates, and the loser says so.
func lostRace(t *testing.T, s *site, by chain.Address, key secret.String) {
	before, w := s.nonce(by), &witness{}
	w.swallows.Store(true)
	s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	_, other := s.keeper(11)
	s.rival(w.broadcasts()[0], other)
	w.swallows.Store(false)
	if r := s.result(j.ID, 1); r.Outcome != job.LostRace || r.TxHash.IsZero() || r.Outcome.Failure() {
		t.Errorf("result %+v", r)
	}
	if got := s.nonce(by); got != before+1 {
		t.Errorf("%d transactions", got-before)
	}
}

// A nonce that was spent by a transaction that is not ours is found out on final blocks, and the signer rests until
// somebody has looked.
func stolenKey(t *testing.T, s *site, by chain.Address, key secret.String) {
	w := &witness{}
	w.mute.Store(true)
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	s.payFrom(s.private(key), s.nonce(by))
	w.mute.Store(false)
	if r := s.result(j.ID, 1); r.Outcome != job.Foreign || !r.TxHash.IsZero() {
		t.Errorf("result %+v", r)
	}
	s.eventually("the next attempt is queued", func(ctx context.Context) bool {
		s.say(j)
		depth, err := sn.intents.Depth(ctx, by)
		return err == nil && depth == 1
	})
	s.eventually("the reason is given", func(context.Context) bool { return sn.notices.has("paused") })
	if n := sn.sample("sender_foreign_total"); n != 1 {
		t.Errorf("%.0f external transactions were counted", n)
	}
	if heads, err := sn.intents.Heads(t.Context(), by, txm.Pick{Limit: 9}); len(heads) != 0 || err != nil {
		t.Errorf("a paused signer has %+v to do, %v", heads, err)
	}
}
