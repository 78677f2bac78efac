package sender

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/secret"
)

// NON-1: the same key in two regions, each with a database that knows the signer. What the other one sends shows on the
// chain, also while this one has nothing to do: the signer is paused, people are told, and no job is tried first.
func TestSameKeyInTwoRegions(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.mustEndOnce(j, by, start)
	if reason, err := sn.intents.Paused(t.Context(), by); err != nil || reason != "" {
		t.Fatalf("paused before anybody else has sent: %s, %v", reason, err)
	}
	other, err := crypto.HexToECDSA(key.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	s.payFrom(other, start+1)
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

// payFrom has an account pay itself nothing, as a process elsewhere does that has its key.
func (s *site) payFrom(key *ecdsa.PrivateKey, nonce uint64) {
	s.t.Helper()
	to, chainID := crypto.PubkeyToAddress(key.PublicKey), new(big.Int).SetUint64(s.cfg.Keeper.ChainID)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, To: &to, Gas: 21_000, GasTipCap: big.NewInt(5e9), GasFeeCap: big.NewInt(5e9)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.mined(tx.Hash(), s.chain.SendTransaction(s.t.Context(), tx))
}
