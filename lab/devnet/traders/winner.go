package traders

import (
	"context"
	"math/big"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
)

// win is one step of a trader who gains too much; see account.win.
var win = action{name: "gain too much", run: (*account).win}

const (
	// surge is the jump, in basis points, that makes the winner's position gain more than its market allows.
	surge = 300
	// surgePatience is how many steps a jumped price stays up for the deleveraging, and rest how many steps are between
	// two jumps.
	surgePatience, winnerRest = 8, 6
)

// stake is the bet of a winner: a place, what it was worth when the price jumped, and how long that has been.
type stake struct {
	where  place
	size   *big.Int // nil before the price has jumped
	waited int
}

// win plays a market's side into auto-deleveraging, one step at a time: it opens a position so large that a jump of the
// price makes the side gain more than MAX_PNL_FACTOR_FOR_ADL of the pool, makes the price jump, and when the position
// has been deleveraged, or nobody has done it, lets the price fall back and closes what is left.
func (a *account) win(ctx context.Context) error {
	open, err := a.positions(ctx)
	if err != nil {
		return err
	}
	s := &a.stake
	p, found := open[s.where]
	switch {
	case s.size != nil:
		if s.waited++; found && p.SizeInUsd.Cmp(s.size) >= 0 && s.waited < surgePatience {
			return nil
		}
		s.size, s.waited = nil, -winnerRest
		return a.t.deps.Shock(s.where.market.Index, -surge*10_000/(10_000+surge))
	case s.waited < 0:
		s.waited++
		if found && s.waited == 1-winnerRest {
			return a.place(ctx, s.where, exchange.OrderRequest{
				Market: s.where.market.Address, Collateral: s.where.collateral, Type: exchange.MarketDecrease,
				IsLong: true, SizeUSD: p.SizeInUsd,
			})
		}
		return nil
	case found:
		s.size = p.SizeInUsd
		return a.t.deps.Shock(s.where.market.Index, surge)
	}
	return a.bet(ctx)
}

// bet opens the position in the market where the least is needed.
func (a *account) bet(ctx context.Context) error {
	var least *big.Int
	for _, m := range a.client().Deployment().Markets {
		size, err := a.sizeToWin(ctx, m)
		if err != nil {
			return err
		}
		if least == nil || size.Cmp(least) < 0 {
			least, a.stake.where = size, place{market: m, collateral: m.Short, isLong: true}
		}
	}
	if least == nil {
		return errNothingToDo
	}
	_, price := a.t.deps.Marks.Mark(a.stake.where.collateral)
	if price == nil || price.Sign() <= 0 {
		return errNothingToDo
	}
	collateral := new(big.Int).Quo(least, big.NewInt(8))
	return a.place(ctx, a.stake.where, exchange.OrderRequest{
		Market: a.stake.where.market.Address, Collateral: a.stake.where.collateral, Type: exchange.MarketIncrease,
		IsLong: true, SizeUSD: least,
		CollateralAmount: collateral.Quo(collateral, price),
	})
}

// sizeToWin is how large a long has to be, in USD, to gain one and a half times what the market allows its side when
// the price jumps.
func (a *account) sizeToWin(ctx context.Context, m exchange.Market) (*big.Int, error) {
	c := a.client()
	limit, err := c.Uint(ctx, "MAX_PNL_FACTOR", contracts.BaseKey("MAX_PNL_FACTOR_FOR_ADL"), m.Address, true)
	if err != nil {
		return nil, err
	}
	pool, err := c.Uint(ctx, "POOL_AMOUNT", m.Address, m.Long)
	if err != nil {
		return nil, err
	}
	low, _ := a.t.deps.Marks.Mark(m.Long)
	if low == nil || limit.Sign() == 0 {
		return nil, errNothingToDo
	}
	gain := pool.Mul(pool, low)
	gain.Mul(gain, limit).Quo(gain, dollars(1)) // a factor of 100 % has as many decimals
	return gain.Mul(gain, big.NewInt(15_000)).Quo(gain, big.NewInt(surge)), nil
}
