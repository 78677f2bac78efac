package sender

import (
	"context"
	"math/big"
	"slices"
	"testing"
	"time"

	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/setting/secret"
)

// The main road, with everything real but the planner's voice.
func TestRoad(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(0)
	w := &walk{db: s.db}
	r := s.sender([]secret.String{key})

	t.Run("an order is executed once, however often it is said", func(t *testing.T) {
		before := s.nonce(by)
		j := s.orderJob(s.marketOrder(1000), by)
		s.say(j, j, j)
		r := s.result(j.ID, 1)
		if r.Outcome != job.Done || r.Signer != by || r.Nonce != before || r.TxHash.IsZero() || r.Block.Number == 0 ||
			r.GasUsed == 0 || r.Key != j.Key {
			t.Errorf("result %+v", r)
		}
		if got := s.nonce(by); got != before+1 {
			t.Errorf("%d transactions for one job", got-before)
		}
		s.eventually("what was said of it before is kept", func(ctx context.Context) bool {
			attempts, err := txstore.NewIntents(s.db).Attempts(ctx, txstore.Wanted{JobID: j.ID}, 1)
			if err != nil || len(attempts) != 1 {
				return false
			}
			said, err := txstore.NewCheckLog(s.db).Of(ctx, []int64{attempts[0].Intent.ID})
			return err == nil && slices.ContainsFunc(said, func(e checklog.Entry) bool {
				return e.Check == checklog.Call && e.Verdict == "proceed" && e.By != "" && e.Block > 0
			})
		})
	})

	t.Run("said again when it is done, it is skipped without a nonce", func(t *testing.T) {
		j := s.orderJob(s.marketOrder(1000), by)
		s.say(j)
		s.result(j.ID, 1)
		before := s.nonce(by)
		s.eventually("the job has cooled down", func(context.Context) bool {
			s.say(j)
			return len(s.results(j.ID)) > 1
		})
		if r := s.result(j.ID, 2); r.Outcome != job.SkippedDone || !r.TxHash.IsZero() {
			t.Errorf("result %+v", r)
		}
		if got := s.nonce(by); got != before {
			t.Errorf("%d transactions for a job that was done", got-before)
		}
	})

	// LIQ-7: looked at again, and found healthy.
	t.Run("a healthy position is left alone", func(t *testing.T) {
		before := s.nonce(by)
		j := s.liquidationJob(by)
		s.say(j)
		if r := s.result(j.ID, 1); r.Outcome != job.DroppedRecovered || !r.TxHash.IsZero() {
			t.Errorf("result %+v", r)
		}
		if got := s.nonce(by); got != before {
			t.Errorf("%d transactions for a healthy position", got-before)
		}
	})

	// A transaction that succeeds has not always executed the order.
	t.Run("an order whose price cannot be had is cancelled by the venue", func(t *testing.T) {
		j := s.orderJob(s.marketOrder(1000, func(r *exchange.OrderRequest) { r.AcceptablePrice = big.NewInt(1) }), by)
		s.say(j)
		if r := s.result(j.ID, 1); r.Outcome != job.CancelledByVenue || r.TxHash.IsZero() || r.Reason == "" {
			t.Errorf("result %+v", r)
		}
	})

	// TIER-9: by the Master of three tiers, in its own window.
	t.Run("a position under water is liquidated", func(t *testing.T) {
		s := s.in(t)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the rooms did\n%s%+v", w.text(), w.checks)
			}
		})
		r.stop()
		s.share(1, 2, time.Hour)
		s.sender([]secret.String{key}, w.on)
		j := s.liquidationJob(by)
		w.follow(j.ID)
		if err := s.Shock("WETH", -1500); err != nil {
			t.Fatal(err)
		}
		s.eventually("the liquidation", func(context.Context) bool {
			s.say(j)
			results := s.results(j.ID)
			return len(results) > 0 && results[len(results)-1].Outcome == job.Done
		})
		if _, open, err := s.Venue.Position(t.Context(), s.trader.Address, s.market.Address, s.market.Short,
			true); open || err != nil {
			t.Errorf("the position is open: %v, %v", open, err)
		}
		results := s.results(j.ID) // LIQ-11, LIQ-12: it says to the owner what became of the position
		got := results[len(results)-1].Settlement
		if got == nil || got.SizeDeltaUsd.IsZero() || !got.SizeLeftUsd.IsZero() || got.ExecutionPrice.IsZero() ||
			got.PnlUsd.Sign() >= 0 ||
			got.CollateralDelta.IsZero() || got.Insolvent == got.BadDebtUsd.IsZero() ||
			got.Insolvent == (len(got.Returned) > 0) {
			t.Errorf("settled as %+v", got)
		}
		t.Logf("settled as %+v", got)
		s.eventually("the result is noted as reported", func(context.Context) bool { return w.isOver() })
		w.must(t, "liquidation.txt")
	})
}
