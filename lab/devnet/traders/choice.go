package traders

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/exchange"
)

// mostWaiting is how many waiting orders an account keeps: prices leave some of them behind for good, and an exchange
// on which nobody took those back would have more of them every hour.
const mostWaiting = 20

func (a *account) someOrder() (*order, error) {
	if len(a.orders) == 0 {
		return nil, errNothingToDo
	}
	return &a.orders[a.random.IntN(len(a.orders))], nil
}

// remember notes a waiting order, and takes the oldest one back where there are too many.
func (a *account) remember(ctx context.Context, o order) error {
	a.orders = append(a.orders, o)
	if len(a.orders) <= mostWaiting {
		return nil
	}
	if err := a.cancelWaiting(ctx, a.orders[0].key); !errors.Is(err, errNothingToDo) {
		return err
	}
	return nil // it had ended
}

// cancelWaiting cancels a waiting order.
func (a *account) cancelWaiting(ctx context.Context, key common.Hash) error {
	hash, err := a.client().CancelOrder(ctx, a.key, key)
	err = a.wait(ctx, hash, err)
	if err == nil {
		a.forget(key)
	}
	return a.forgetIfGone(key, err)
}

func (a *account) forget(key common.Hash) {
	a.orders = slices.DeleteFunc(a.orders, func(o order) bool { return o.key == key })
}

// forgetIfGone turns a refusal of a waiting order into nothing to do: it was executed, cancelled or undone by a reorg
// before.
func (a *account) forgetIfGone(key common.Hash, err error) error {
	if _, reverted := errors.AsType[*exchange.RevertError](err); !reverted {
		return err
	}
	a.forget(key)
	return errNothingToDo
}

// somePosition picks one of the account's open positions.
func (a *account) somePosition(ctx context.Context) (place, exchange.Position, error) {
	open, err := a.positions(ctx)
	if err != nil {
		return place{}, exchange.Position{}, err
	}
	if len(open) == 0 {
		return place{}, exchange.Position{}, errNothingToDo
	}
	// A map has no order of its own; the seed shall decide.
	places := slices.SortedFunc(maps.Keys(open), func(x, y place) int {
		return cmp.Or(x.market.Address.Cmp(y.market.Address), x.collateral.Cmp(y.collateral),
			boolCompare(x.isLong, y.isLong))
	})
	where := places[a.random.IntN(len(places))]
	return where, open[where], nil
}

// somewhere is any market and side; three of four positions have the stable token as collateral.
func (a *account) somewhere() place {
	markets := a.tradedMarkets()
	where := place{market: markets[a.random.IntN(len(markets))], isLong: a.flip()}
	where.collateral = where.market.Short
	if a.random.IntN(4) == 0 {
		where.collateral = where.market.Long
	}
	return where
}

// tradedMarkets are those that have positions.
func (a *account) tradedMarkets() []exchange.Market {
	return slices.DeleteFunc(slices.Clone(a.client().Deployment().Markets), exchange.Market.SwapsOnly)
}

func (a *account) someMarket() exchange.Market {
	markets := a.client().Deployment().Markets
	return markets[a.random.IntN(len(markets))]
}

// mark is the index price for a buyer or a seller, moved by hundredths of a percent in favour of a long, against a
// short.
func (a *account) mark(where place, buys bool, points int64) (*big.Int, error) {
	low, high := a.t.deps.Marks.Mark(where.market.Index)
	if low == nil || high == nil {
		return nil, errNothingToDo
	}
	if !where.isLong {
		points = -points
	}
	if buys {
		return scale(high, points), nil
	}
	return scale(low, points), nil
}

// worth is so many dollars in units of a token.
func (a *account) worth(token common.Address, usd int64) (*big.Int, error) {
	_, price := a.t.deps.Marks.Mark(token)
	if price == nil || price.Sign() <= 0 {
		return nil, errNothingToDo
	}
	amount := dollars(usd)
	return amount.Quo(amount, price), nil
}

// dollars is USD with 30 decimals.
func dollars(n int64) *big.Int {
	return exchange.USD30(n*1_000_000, 0)
}

// scale moves a price by hundredths of a percent.
func scale(price *big.Int, points int64) *big.Int {
	moved := new(big.Int).Mul(price, big.NewInt(10_000+points))
	return moved.Quo(moved, big.NewInt(10_000))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
