package sender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// routed is a job as a planner routes it that knows which signers are out.
func (s *site) routed(j job.Job, all ...chain.Address) job.Job {
	s.t.Helper()
	out, err := s.db.OutSigners(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	j.Signer = job.NewSigners(all, nil).Route(j.Kind, j.Account, out...)
	return j
}

// isOut waits until a signer is known to be out.
func (s *site) isOut(by chain.Address) {
	s.t.Helper()
	s.eventually("the signer is out", func(ctx context.Context) bool {
		out, err := s.db.OutSigners(ctx)
		return err == nil && slices.Contains(out, by)
	})
}

// become has the site's trader be another account, with means and permissions.
func (s *site) become(n int) {
	s.t.Helper()
	address, key := s.keeper(n)
	s.trader = devnet.Account{Key: s.private(key), Address: common.Address(address)}
	if err := s.Equip(s.t.Context(), s.trader, s.market.Short, 1e15); err != nil {
		s.t.Fatal(err)
	}
}

// keeps takes the transactions of an account, and keeps them to itself.
func keeps(of chain.Address, chainID uint64) spoiler {
	return sentBy(of, chainID, func(f *front, w http.ResponseWriter, q query, raw []byte) {
		f.answer(w, q, fmt.Appendf(nil, "%q", chain.Keccak256(raw).Hex()), nil)
	})
}

// sentBy answers to the transactions of an account.
func sentBy(of chain.Address, chainID uint64, answer func(*front, http.ResponseWriter, query, []byte)) spoiler {
	format := types.LatestSignerForChainID(new(big.Int).SetUint64(chainID))
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		var raw hexutil.Bytes
		var tx types.Transaction
		if q.Method != "eth_sendRawTransaction" || json.Unmarshal(q.Params[0], &raw) != nil ||
			tx.UnmarshalBinary(raw) != nil {
			return false
		}
		if from, err := types.Sender(format, &tx); err != nil || from != common.Address(of) {
			return false
		}
		answer(f, w, q, raw)
		return true
	}
}

// NON-15, the signer whose key is gone: with the only place for liquidations it has one in flight, that does not land,
// and an order in its queue. A sender that lacks its key does another account's liquidation and the order all the same,
// and tells of the signer. What it had in flight is another's as soon as it is written off.
func TestLostSignerHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Sender.MaxLiquidations, s.cfg.Sender.Volatile.MaxLiquidations = 1, 1
	gone, goneKey := s.keeper(0)
	other, otherKey := s.keeper(1)
	node := s.front(0, nil)
	s.behind(node)
	first := s.sender([]secret.String{goneKey, otherKey})
	var jobs []job.Job
	for _, n := range []int{5, 4} {
		s.become(n)
		o := s.orderJob(s.marketOrder(1000), other)
		s.say(o)
		s.result(o.ID, 1)
		jobs = append(jobs, s.liquidationJob(gone))
	}
	if err := s.Shock("WETH", -1500); err != nil {
		t.Fatal(err)
	}
	node.become(keeps(gone, s.cfg.Keeper.ChainID))
	s.eventually("the first is in flight", func(ctx context.Context) bool {
		s.say(jobs[0])
		inFlight, err := first.intents.InFlight(ctx, gone)
		return err == nil && len(inFlight) > 0
	})
	first.stop() // and the key with it

	left, second := time.Now(), s.sender([]secret.String{otherKey})
	s.eventually("a sender without the key tells of the signer", func(ctx context.Context) bool {
		err := second.notices.healthy(ctx)
		return err != nil && strings.Contains(err.Error(), "signer write-off "+gone.Hex()) &&
			second.sample("sender_paused", gone.Hex()) == 1
	})
	t.Logf("told %s after its last process has left", time.Since(left))
	waits := s.orderJob(s.marketOrder(100), gone)
	s.say(waits)
	s.isOut(gone)
	s.eventually("what waits is another signer's, whose liquidation finds a place", func(context.Context) bool {
		s.say(s.routed(jobs[1], gone, other), s.routed(waits, gone, other))
		return slices.ContainsFunc(s.results(jobs[1].ID), func(r job.Result) bool { return r.Outcome == job.Done }) &&
			len(s.results(waits.ID)) > 0
	})
	if r := s.result(waits.ID, 1); r.Signer != other {
		t.Errorf("the order's result: %+v", r)
	}
	inFlight, err := second.intents.InFlight(t.Context(), gone)
	if err != nil || len(inFlight) != 1 {
		t.Fatalf("in flight of the signer that is gone: %v, %v", inFlight, err)
	}
	// as keeperctl signer write-off does
	operator, err := second.leases.Acquire(t.Context(), gone, lease.NewOwner("operator"), time.Minute)
	if err == nil {
		err = second.intents.NonceLost(t.Context(), operator, inFlight[0].Intent.ID,
			txm.Ending{Verdict: txm.Verdict{Outcome: job.Withdrawn, Reason: "written off"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("what it had in flight is done, and nothing is told any more", func(ctx context.Context) bool {
		s.say(s.routed(jobs[0], gone, other))
		return slices.ContainsFunc(s.results(jobs[0].ID), func(r job.Result) bool {
			return r.Outcome == job.Done && r.Signer == other
		}) && second.notices.healthy(ctx) == nil
	})
}

// locked is a remote signer whose account is locked.
type locked struct{ signer.Signer }

func (k locked) Sign(context.Context, signer.Tx) ([]byte, chain.Hash, error) {
	return nil, chain.Hash{}, &signer.RefusedError{Code: -32000, Message: "authentication needed"}
}

// NON-15, the signer that cannot sign, and the one that cannot pay: it is told, and another signer does what waits.
// Able again it is asked again.
func TestUnableSignerIsPassedBy(t *testing.T) {
	s := newSite(t)
	unable, key := s.keeper(0)
	other, otherKey := s.keeper(1)
	node := s.front(0, nil)
	s.behind(node)
	for _, c := range []struct {
		name  string
		on    func(*Sender)
		spoil spoiler
		want  string
	}{
		{"its remote signer refuses", func(sn *Sender) { sn.keys[0] = locked{sn.keys[0]} }, nil,
			"authentication needed"},
		{"its balance is empty", func(*Sender) {}, sentBy(unable, s.cfg.Keeper.ChainID,
			func(f *front, w http.ResponseWriter, q query, _ []byte) {
				f.answer(w, q, nil, failure(errors.New("insufficient funds for gas * price + value")))
			}), "cannot pay for gas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			node.become(c.spoil)
			r := s.sender([]secret.String{key, otherKey}, c.on)
			asked := s.orderJob(s.marketOrder(100), unable)
			s.say(asked)
			s.isOut(unable)
			waits := s.orderJob(s.marketOrder(100), unable)
			s.say(s.routed(waits, unable, other))
			if got := s.result(waits.ID, 1); got.Outcome != job.Done || got.Signer != other {
				t.Errorf("result %+v", got)
			}
			s.eventually("it is told", func(ctx context.Context) bool {
				all, err := txstore.NewSigners(s.db).List(ctx)
				return err == nil && slices.ContainsFunc(all, func(one txstore.SignerStatus) bool {
					return one.Signer == unable && strings.Contains(one.Out(), c.want)
				}) && r.notices.has(c.want) && r.sample("sender_paused", unable.Hex()) == 1
			})
			r.stop()
		})
	}
}
