package perp

import (
	"testing"

	"perpkeeper/pkg/chain"
)

// The contract compares the price at which the order would execute; see BaseOrderUtils.validateOrderTriggerPrice.
func TestTriggered(t *testing.T) {
	const trigger = 100
	for _, c := range []struct {
		kind     OrderType
		isLong   bool
		min, max uint64
		want     bool
	}{
		{LimitIncrease, true, 98, 100, true}, {LimitIncrease, true, 98, 101, false},
		{LimitIncrease, false, 100, 102, true}, {LimitIncrease, false, 99, 102, false},
		{StopIncrease, true, 98, 100, true}, {StopIncrease, true, 98, 99, false},
		{StopIncrease, false, 100, 102, true}, {StopIncrease, false, 101, 102, false},
		{LimitDecrease, true, 100, 102, true}, {LimitDecrease, true, 99, 102, false},
		{LimitDecrease, false, 98, 100, true}, {LimitDecrease, false, 98, 101, false},
		{StopLossDecrease, true, 100, 102, true}, {StopLossDecrease, true, 101, 102, false},
		{StopLossDecrease, false, 98, 100, true}, {StopLossDecrease, false, 98, 99, false},
		{MarketIncrease, true, 1, 1, true}, {MarketDecrease, false, 1, 1, true},
	} {
		o := Order{OrderType: c.kind, IsLong: c.isLong, TriggerPrice: chain.U64(trigger)}
		if got := Triggered(o, Price{chain.U64(c.min), chain.U64(c.max)}); got != c.want {
			t.Errorf("type %d, long %v, price %d..%d against %d: got %v", c.kind, c.isLong, c.min, c.max, trigger, got)
		}
	}
}

func TestWindows(t *testing.T) {
	market := Order{OrderType: MarketIncrease, UpdatedAtTime: chain.U64(1000), ValidFromTime: chain.U64(5000)}
	if w := OrderWindow(market, Position{}, 300); w != (Window{1000, 1300}) {
		t.Errorf("market order: %v", w)
	}
	stop := Order{OrderType: StopLossDecrease, UpdatedAtTime: chain.U64(1000), ValidFromTime: chain.U64(1100)}
	if w := OrderWindow(stop, Position{IncreasedAtTime: chain.U64(1200)}, 300); w != (Window{From: 1200}) {
		t.Errorf("stop loss: %v", w)
	}
	limit := Order{OrderType: LimitIncrease, UpdatedAtTime: chain.U64(1000), ValidFromTime: chain.U64(1100)}
	if w := OrderWindow(limit, Position{IncreasedAtTime: chain.U64(1200)}, 300); w != (Window{From: 1100}) {
		t.Errorf("limit: %v", w)
	}
	p := Position{IncreasedAtTime: chain.U64(7), DecreasedAtTime: chain.U64(9)}
	if w := LiquidationWindow(p); w != (Window{From: 9}) {
		t.Errorf("liquidation: %v", w)
	}
	never := Order{OrderType: LimitIncrease, ValidFromTime: chain.Uint{}.Add(maxInt)}
	if OrderWindow(never, Position{}, 300).Holds(1 << 40) {
		t.Error("an order valid from beyond all time is never due")
	}
	if w := (Window{10, 20}); w.Holds(9) || !w.Holds(10) || !w.Holds(20) || w.Holds(21) {
		t.Error("both ends of a window are included")
	}
}
