package fakechain

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// Position looks up one position.
func (d *Derived) Position(_ context.Context, key chain.Hash) (pg.Found[perp.Position], error) {
	return find[perp.Position](d, perp.Positions, key)
}

// Order looks up one order.
func (d *Derived) Order(_ context.Context, key chain.Hash) (pg.Found[perp.Order], error) {
	return find[perp.Order](d, perp.Orders, key)
}

// Request looks up one deposit, withdrawal or shift.
func (d *Derived) Request(_ context.Context, key chain.Hash) (pg.Found[perp.Request], error) {
	return find[perp.Request](d, perp.Requests, key)
}

// MarketValue looks up one measure of a market.
func (d *Derived) MarketValue(_ context.Context, key chain.Hash) (pg.Found[perp.MarketValue], error) {
	return find[perp.MarketValue](d, perp.MarketValues, key)
}
