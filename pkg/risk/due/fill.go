package due

import (
	"fmt"

	"perpkeeper/pkg/perp"
)

// unfillable is why the venue would freeze a waiting order if it were executed now, as far as the state shows: the
// price it would be filled at, impact included, is not acceptable, or the market has no room for what it adds. Nil
// where nothing of the kind is known; the venue has more reasons than these.
func (m *Moment) unfillable(o perp.Order, position perp.Position, index Quote) error {
	if o.SizeDeltaUsd.IsZero() {
		return nil // an order that moves collateral alone accepts any price
	}
	terms, err := m.View().Terms(o.Market)
	if err != nil {
		return err
	}
	price, err := terms.ExecutionPrice(o, position)
	if err != nil {
		return fmt.Errorf("no price to fill it at: %w", err)
	}
	if !perp.Acceptable(o, perp.Price{Min: price, Max: price}) {
		return fmt.Errorf("it would be filled at %s (the index price is %s to %s), worse than the acceptable price %s",
			price, index.Min, index.Max, o.AcceptablePrice)
	}
	if o.OrderType.IsIncrease() {
		return terms.Capacity(m.Rows, o.SizeDeltaUsd, o.IsLong)
	}
	return nil
}
