package preflight

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/txmanager"
)

// healthy is what the venue says of a position of which so many dollars remain and so many must.
func healthy(remaining, required int64) gmx.Revert {
	usd := func(n int64) chain.Int { return chain.I64(n).Mul(perp.One.Int()) }
	return gmx.Revert{Class: gmx.Recovered, Name: "PositionShouldNotBeLiquidated", Args: []gmx.RevertArg{
		{Name: "reason", Value: "healthy"}, {Name: "remainingCollateralUsd", Value: usd(remaining)},
		{Name: "minCollateralUsd", Value: usd(1)},
		{Name: "minCollateralUsdForLeverage", Value: usd(required)},
	}}
}

// LIQ-7: a liquidation that is found due too early, as for an account with a referral discount, waits without an end
// and without a failure for as long as the planner says it. One that has recovered is dropped.
func TestNearlyLiquidatableWaits(t *testing.T) {
	said := job.Job{Kind: job.Liquidation, Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: nowMs}}}
	waits := func(j job.Job, r gmx.Revert, headMs uint64) bool {
		v := premature(j, verdictOf(r), headMs)
		if v.Kind == txmanager.Defer {
			return v.Pause == time.Second && v.Outcome == ""
		}
		if v.Kind != txmanager.Drop || v.Outcome != job.DroppedRecovered || v.Outcome.Failure() {
			t.Fatalf("%+v", v)
		}
		return false
	}
	for remaining, want := range map[int64]bool{100: true, 101: true, 110: true, 111: false, 1000: false} {
		if waits(said, healthy(remaining, 100), nowMs+1000) != want {
			t.Errorf("%d of 100 remain: waits %t", remaining, !want)
		}
	}
	if !waits(said, healthy(101, 100), nowMs+recentlyFoundMs) ||
		waits(said, healthy(101, 100), nowMs+recentlyFoundMs+1) {
		t.Error("it waits for as long as the planner says it, and no longer")
	}
	if waits(said, gmx.Revert{Class: gmx.Recovered, Name: "InvalidOrderPrices"}, nowMs) {
		t.Error("another recovery waits")
	}
	if !waits(said, gmx.Revert{Class: gmx.Recovered, Name: "OrderValidFromTimeNotReached"}, nowMs) {
		t.Error("a part of a TWAP order whose second is about to come is dropped")
	}
	order := job.Job{Kind: job.Order, Evidence: said.Evidence}
	freezes := odd("it would be frozen")
	if v := premature(order, freezes, nowMs); v != freezes {
		t.Errorf("an answer that says nothing: %+v", v)
	}
	freezes.Premature = true
	if v := premature(order, freezes, nowMs+recentlyFoundMs); v.Kind != txmanager.Defer || v.Pause != time.Second {
		t.Errorf("an order that would be frozen: %+v", v)
	}
	if v := premature(order, freezes, nowMs+recentlyFoundMs+1); v.Kind != txmanager.Drop ||
		v.Outcome != job.DroppedRecovered {
		t.Errorf("an order that would be frozen and is not said any more: %+v", v)
	}
}
