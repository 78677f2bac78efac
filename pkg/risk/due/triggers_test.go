package due

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Whatever orders come and go, none whose trigger is met is passed over.
func TestTriggersPassOverNone(t *testing.T) {
	waitingTypes := []perp.OrderType{perp.LimitIncrease, perp.StopIncrease, perp.LimitDecrease, perp.StopLossDecrease}
	price := func(t *rapid.T, name string) chain.Uint {
		// Prices of more digits than a float has, a few units apart.
		return chain.U64(4).Mul(chain.Pow10(30)).Add(chain.U64(rapid.Uint64Range(0, 3).Draw(t, name)))
	}
	rapid.Check(t, func(t *rapid.T) {
		var triggers Triggers
		twin := map[chain.Hash]perp.Order{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			key := chain.Hash{byte(rapid.IntRange(0, 9).Draw(t, "order"))}
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				triggers.Remove(key)
				delete(twin, key)
			} else {
				o := perp.Order{
					Key: key, OrderType: rapid.SampledFrom(waitingTypes).Draw(t, "type"), IsLong: rapid.Bool().
						Draw(t, "long"),
					TriggerPrice: price(t, "trigger"),
				}
				triggers.Put(o)
				twin[key] = o
			}
			low, high := price(t, "low"), price(t, "high")
			index := perp.Price{Min: low.Min(high), Max: low.Max(high)}
			reached := map[chain.Hash]bool{}
			triggers.Reached(index, func(o perp.Order) {
				if reached[o.Key] {
					t.Fatalf("order %x is named twice", o.Key[:1])
				}
				reached[o.Key] = true
			})
			for key, o := range twin {
				if perp.Triggered(o, index) && !reached[key] {
					t.Fatalf("%v of trigger %s is passed over at %s to %s", o.OrderType, o.TriggerPrice, index.Min,
						index.Max)
				}
			}
			if len(reached) > len(twin) {
				t.Fatal("orders that are gone are reached")
			}
		}
	})
}

// Orders far from their triggers are not looked at.
func TestTriggersFilter(t *testing.T) {
	var triggers Triggers
	for i := range byte(100) {
		triggers.Put(perp.Order{Key: chain.Hash{i}, OrderType: perp.LimitIncrease, IsLong: true,
			TriggerPrice: chain.U64(1000 - uint64(i))})
	}
	count := 0
	triggers.Reached(perp.Price{Min: chain.U64(998), Max: chain.U64(998)}, func(perp.Order) { count++ })
	if count != 3 {
		t.Errorf("%d orders looked at, want those at 998, 999 and 1000", count)
	}
}
