package sender

import (
	"context"
	"testing"
	"time"

	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// Finality stands still for 300 blocks. What is mined takes no place while it waits to be final: everything is sent and
// mined, never more at a time than may be pending. Nothing ends before it is final, a process that comes in the middle
// of it finds everything, and afterwards every job ends, once.
func TestFinalityStalls(t *testing.T) {
	const limit, jobs, blocks = 4, 10, 300
	s := newSite(t)
	s.cfg.Sender.MaxInFlight, s.cfg.Sender.Reserved = limit, 0
	by, key := s.keeper(0)
	before := s.nonce(by)
	var said []job.Job
	for range jobs {
		said = append(said, s.orderJob(s.marketOrder(100), by))
	}
	s.devnet.Node().StallFinality()
	defer s.devnet.Resume()
	first := s.sender([]secret.String{key})
	s.say(said...)
	mined := func() {
		t.Helper()
		s.eventually("all are mined and none is final", func(ctx context.Context) bool {
			pending, err := txstore.NewIntents(s.db).Pending(ctx, by)
			if err != nil || pending > limit {
				t.Errorf("%d pending, %v", pending, err)
			}
			return s.minedInFlight(ctx, by) == jobs && pending == 0
		})
	}
	mined()
	head := s.devnet.Node().Head().Number.Uint64()
	grow := func(to uint64) {
		t.Helper()
		for s.devnet.Node().Head().Number.Uint64() < head+to {
			if err := s.devnet.Node().Mine(10); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(blocks / 2)
	first.stop()
	second := s.sender([]secret.String{key})
	grow(blocks)
	s.eventually("the sender has seen it all", func(context.Context) bool {
		at, _ := second.headTracker.Newest()
		return at.Number >= head+blocks
	})
	mined()
	for _, j := range said {
		if early := s.results(j.ID); len(early) > 0 {
			t.Errorf("published before it was final: %+v", early)
		}
	}
	if got := s.nonce(by); got != before+jobs {
		t.Errorf("%d transactions for %d jobs", got-before, jobs)
	}
	s.devnet.Resume()
	s.mustAllEndOnce(said, by, before)
}

// LIQ-6: as many orders as may be in flight are mined and wait to be final, which takes as long as it takes. A
// liquidation finds a place at once.
func TestLiquidationDoesNotWaitForFinality(t *testing.T) {
	const soon = 10 * time.Second
	s := newSite(t)
	s.cfg.Sender.MaxInFlight, s.cfg.Sender.Reserved, s.cfg.Sender.Volatile.MaxInFlight = 6, 0, 6
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	opening := s.orderJob(s.marketOrder(1000), by)
	s.say(opening)
	s.result(opening.ID, 1)
	s.devnet.Node().StallFinality()
	defer s.devnet.Resume()
	if err := s.devnet.Shock("WETH", -1500); err != nil {
		t.Fatal(err)
	}
	var orders []job.Job
	short := func(r *exchange.OrderRequest) { r.IsLong = false }
	for range s.cfg.Sender.MaxInFlight {
		orders = append(orders, s.orderJob(s.marketOrder(10, short), by))
	}
	s.say(orders...)
	s.eventually("as many orders are mined as may be in flight", func(ctx context.Context) bool {
		return s.minedInFlight(ctx, by) == len(orders)
	})
	began, liquidation, asked := time.Now(), s.liquidationJob(by), 0
	s.eventually("the position is liquidated", func(ctx context.Context) bool {
		if asked++; asked%25 == 1 { // as the planner's sweep does
			s.say(liquidation)
		}
		_, open, err := s.venue.Position(ctx, s.trader.Address, s.market.Address, s.market.Short, true)
		return err == nil && !open
	})
	if took := time.Since(began); took > soon {
		t.Errorf("it took %s, and the sender says: %v", took, sn.notices.healthy(t.Context()))
	}
	if n := s.minedInFlight(t.Context(), by); n < len(orders) {
		t.Errorf("%d orders are mined and not final: nothing was tried here", n)
	}
}

// minedInFlight counts a signer's transactions that are mined and not final.
func (s *site) minedInFlight(ctx context.Context, by chain.Address) (n int) {
	inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
	if err != nil {
		return 0
	}
	for _, f := range inFlight {
		if f.Intent.State == txm.Mined {
			n++
		}
	}
	return n
}
