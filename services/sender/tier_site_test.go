package sender

import (
	"context"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	dto "github.com/prometheus/client_model/go"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// TestTiers lets a keeper share a site with others, which the test plays by their keys: all it knows of them it learns
// from the chain. What they execute and what is taken over from them is counted (TIER-16).
func TestTiers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i, c := range []struct {
		name string
		run  func(*testing.T, *site, chain.Address, secret.String)
	}{
		{"executed by the Master", executedByMaster},
		{"the Master is silent", silentMaster},
	} {
		by, key := s.keeper(i)
		t.Run(c.name, func(t *testing.T) { c.run(t, s.in(t), by, key) })
	}
}

// peerIndex is the account that plays another keeper's signer.
const peerIndex = 11

// share makes the site's senders one tier of three, beside another whose signer is the peer.
func (s *site) share(priority, peers int, window time.Duration) {
	peer, _ := s.keeper(peerIndex)
	s.cfg.Tier.Enabled, s.cfg.Tier.Priority, s.cfg.Tier.Window = true, priority, window
	s.cfg.Tier.Peers = []tier.Peer{{Tier: peers, Signers: []chain.Address{peer}}}
}

// peerExecutes sends what another keeper would send for a job: the call that this one would make.
func (s *site) peerExecutes(r *running, j job.Job) {
	s.t.Helper()
	_, key := s.keeper(peerIndex)
	private := s.private(key)
	task := &txmanager.Task{Intent: txm.Intent{Job: j}}
	checker := r.newPreflight().Checker(r.keys[0].Address(), func() {})
	defer checker.Close()
	s.eventually("the call succeeds", func(ctx context.Context) bool {
		v, err := checker.Run(ctx, task)
		return err == nil && v.Kind == txmanager.Proceed
	})
	to := common.Address(task.Call.To)
	tx := &types.DynamicFeeTx{
		ChainID:   new(big.Int).SetUint64(s.cfg.Keeper.ChainID),
		Nonce:     s.nonce(chain.Address(crypto.PubkeyToAddress(private.PublicKey))),
		GasTipCap: big.NewInt(txm.Gwei), GasFeeCap: big.NewInt(txm.Gwei), Gas: task.Call.Gas, To: &to,
		Data: task.Call.Data,
	}
	signed, err := types.SignNewTx(private, types.LatestSignerForChainID(tx.ChainID), tx)
	if err != nil {
		s.t.Fatal(err)
	}
	if receipt := s.mined(signed.Hash(), s.Client.SendTransaction(s.t.Context(), signed)); receipt.Status != 1 {
		s.t.Fatal("the peer's transaction failed")
	}
}

// TIER-4, TIER-11: a backup waits while the Master has its window, sees what the Master does, and spends nothing.
func executedByMaster(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.share(2, 1, 10*time.Minute)
	before, r := s.nonce(by), s.sender([]secret.String{key})
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the job waits", func(context.Context) bool { return r.turns.Waits(j.ID) })
	s.peerExecutes(r, j)
	s.eventually("the job is dropped", func(context.Context) bool { return !r.turns.Waits(j.ID) })
	if n := r.sample("sender_tier_executed_total", "1", "order"); n != 1 {
		t.Errorf("%.0f executions by the Master were seen", n)
	}
	depth, err := txstore.NewIntents(s.db).Depth(t.Context(), by)
	if got := s.nonce(by); err != nil || depth != 0 || got != before || len(s.results(j.ID)) > 0 {
		t.Errorf("%d transactions, %d intents, results %v, %v", got-before, depth, s.results(j.ID), err)
	}
	// Words older than the execution do not queue it again.
	if r.turns.Admit(j); r.turns.Waits(j.ID) {
		t.Error("old words about a job that was executed let it wait again")
	}
}

// TIER-1, TIER-9, TIER-10: the first backup executes when the Master's window has passed, and not before; after three
// misses it need not wait.
func silentMaster(t *testing.T, s *site, by chain.Address, key secret.String) {
	const window = 2 * tier.Guard
	s.share(2, 1, window)
	r := s.sender([]secret.String{key})
	var jobs []job.Job
	for range 3 {
		jobs = append(jobs, s.orderJob(s.marketOrder(100), by))
	}
	s.say(jobs...)
	for _, j := range jobs {
		if age := s.executedAge(j); age < window {
			t.Errorf("executed at the age of %s, in the Master's window", age)
		}
	}
	s.eventually("the Master is suspected", func(context.Context) bool {
		return r.sample("sender_tier_suspected", "1") == 1
	})
	if n := r.sample("sender_tier_takeovers_total", "1"); n != 3 {
		t.Errorf("%.0f jobs were taken over", n)
	}
	s.eventually("a job that is not the Master's probe is executed in what was the Master's window",
		func(context.Context) bool {
			j := s.orderJob(s.marketOrder(100), by)
			s.say(j)
			return s.executedAge(j) < window
		})
}

// sample is a counter or gauge of the process, summed over those whose labels have all of these values.
func (r *running) sample(name string, values ...string) (n float64) {
	r.site.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.site.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			missing := slices.DeleteFunc(slices.Clone(values), func(v string) bool {
				return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == v })
			})
			if f.GetName() == name && len(missing) == 0 {
				n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return n
}

// executedAge is how old a job was in the block that executed it.
func (s *site) executedAge(j job.Job) time.Duration {
	s.t.Helper()
	result := s.result(j.ID, 1)
	if result.Outcome != job.Done {
		s.t.Fatalf("result %+v", result)
	}
	header, err := s.Client.HeaderByHash(s.t.Context(), common.Hash(result.Block.Hash))
	if err != nil {
		s.t.Fatal(err)
	}
	return time.Duration(evmnode.MilliTime(header)-j.DueSinceMs) * time.Millisecond
}
