package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// dearMarket is a node at which nothing below a price gets into a block: it takes it, and keeps it to itself.
type dearMarket struct {
	wei   atomic.Uint64
	quiet atomic.Bool // it does not say so yet
}

func (m *dearMarket) spoil(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
	least := m.wei.Load()
	switch {
	case least == 0:
		return false
	case q.Method == "eth_gasPrice" && m.quiet.Load():
		return false
	case q.Method == "eth_gasPrice":
		f.answer(w, q, fmt.Appendf(nil, `"%#x"`, least), nil)
		return true
	case q.Method != "eth_sendRawTransaction":
		return false
	}
	var raw hexutil.Bytes
	var tx types.Transaction
	if json.Unmarshal(q.Params[0], &raw) != nil || tx.UnmarshalBinary(raw) != nil ||
		tx.GasTipCap().Cmp(new(big.Int).SetUint64(least)) >= 0 {
		return false
	}
	f.answer(w, q, fmt.Appendf(nil, "%q", chain.Keccak256(raw).Hex()), nil)
	return true
}

// depositJob is what a planner says of a deposit, once the state has it.
func (s *site) depositJob(by chain.Address) job.Job {
	s.t.Helper()
	hash, err := s.venue.CreateDeposit(s.t.Context(), s.trader.Key,
		exchange.DepositRequest{Market: s.market, ShortAmount: big.NewInt(100e6)})
	key, found := s.venue.RequestKey(s.mined(hash, err), "DepositCreated")
	if !found {
		s.t.Fatal("no DepositCreated")
	}
	var row perp.Request
	s.eventually("the deposit is in the state", func(ctx context.Context) bool {
		found, err := s.db.Request(ctx, chain.Hash(key))
		row = found.Row
		return err == nil && found.Known
	})
	updated, _ := row.UpdatedAtTime.Uint64()
	return job.Job{
		ID: job.RequestID(job.Deposit, chain.Hash(key)), Kind: job.Deposit, Key: chain.Hash(key), Account: row.Account,
		Market: row.Market, Tokens: s.tokens(), DueSinceMs: uint64(time.Now().UnixMilli()),
		ExpiresMs: (updated + 300) * 1000, Class: job.ClassRequest, Signer: by,
	}
}

// heads waits for so many blocks.
func (s *site) heads(sn *running, n uint64) {
	s.t.Helper()
	from := sn.headTracker.Number()
	s.eventually("blocks come", func(context.Context) bool { return sn.headTracker.Number() >= from+n })
}

// settled reports whether the sender has done for a liquidation all it can at this head: it is in flight, and neither
// it nor what stands before it waits for a better price.
func (s *site) settled(ctx context.Context, sn *running, l job.Job, dear uint64) bool {
	inFlight, err := sn.intents.InFlight(ctx, l.Signer)
	flies := false
	for _, f := range inFlight {
		if n := f.Newest(); f.Mined == nil && (n.Tip < dear || n.Sends == 0) {
			return false
		}
		flies = flies || f.Intent.Job.ID == l.ID
	}
	return err == nil && flies
}

// blocksTo holds the chain still, says a liquidation, and counts the blocks until it has landed. No clock is in the
// count: a block is made when the sender has done what it can at the head before, however long that takes it, or when
// it has had so long that it waits for something. It gives up after 20.
func (s *site) blocksTo(sn *running, l job.Job, dear uint64) (blocks int) {
	s.t.Helper()
	const waits, most = 3 * time.Second, 20
	s.devnet.Stall(time.Hour)
	l.DueSinceMs = uint64(time.Now().UnixMilli())
	s.say(l)
	s.eventually("the liquidation has landed", func(context.Context) bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), waits)
		defer cancel()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !s.settled(ctx, sn, l, dear) && ctx.Err() == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if err := s.devnet.Node().Mine(1); err != nil {
			s.t.Fatal(err)
		}
		blocks++
		_, open, err := s.venue.Position(s.t.Context(), s.trader.Address, s.market.Address, s.market.Short, true)
		return err == nil && !open || blocks == most
	})
	return blocks
}

// Nodes ask for more than a deposit may pay, and less than a liquidation may. No deposit stands before the liquidation:
// one that has no nonce yet gets none, and one that has is paid for as the liquidation is. It lands within two blocks
// of the one that has nothing before it.
func TestNothingCheapStandsBeforeALiquidation(t *testing.T) {
	t.Parallel()
	const dear = 25 * txm.Gwei / 10
	control := 0
	for i, c := range []struct {
		name   string
		before func(s *site, sn *running, m *dearMarket, d job.Job)
	}{
		{"nothing does", func(_ *site, _ *running, m *dearMarket, _ job.Job) { m.wei.Store(dear) }},
		{"a deposit that waits", func(s *site, sn *running, m *dearMarket, d job.Job) {
			m.wei.Store(dear)
			s.heads(sn, 10) // by then everybody knows
			s.say(d)
			s.eventually("the gate says why it waits", func(context.Context) bool {
				return sn.notices.has("the lane maintenance may pay")
			})
			if inFlight, err := sn.intents.InFlight(s.t.Context(), d.Signer); err != nil || len(inFlight) > 0 {
				s.t.Errorf("%d in flight, %v", len(inFlight), err)
			}
		}},
		{"a deposit in flight", func(s *site, sn *running, m *dearMarket, d job.Job) {
			m.quiet.Store(true)
			m.wei.Store(dear)
			s.say(d)
			s.eventually("the deposit is in flight", func(ctx context.Context) bool {
				inFlight, err := sn.intents.InFlight(ctx, d.Signer)
				return err == nil && len(inFlight) > 0
			})
			m.quiet.Store(false)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			by, key := s.keeper(0)
			lostAfter := s.cfg.Sender.Fee.LostAfter
			s.cfg.Sender.Fee = txm.DefaultPolicy()
			s.cfg.Sender.Fee.LostAfter = lostAfter
			m := &dearMarket{}
			s.behind(s.front(0, m.spoil))
			sn := s.sender([]secret.String{key})
			o := s.orderJob(s.marketOrder(1000), by)
			s.say(o)
			s.result(o.ID, 1)
			l, d := s.liquidationJob(by), s.depositJob(by)
			if err := s.devnet.Shock("WETH", -1500); err != nil {
				t.Fatal(err)
			}
			c.before(s, sn, m, d)
			s.heads(sn, 10) // by then everybody knows what nodes ask for, and the shock has spread
			blocks := s.blocksTo(sn, l, dear)
			t.Logf("liquidated %d blocks after it was said", blocks)
			if i == 0 {
				control = blocks
			}
			if control == 0 || blocks > control+2 {
				t.Errorf("liquidated after %d blocks, and after %d where nothing stands before it", blocks, control)
			}
		})
	}
}
