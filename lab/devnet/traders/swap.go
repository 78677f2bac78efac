package traders

import (
	"context"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/exchange"
)

// longestPath is the most markets that a path may lead through; the venue's own limit is among its parameters.
const longestPath = 3

// hopCost is what a trader reckons that each market on a path costs, in hundredths of a percent.
const hopCost = 12

// swap exchanges 500 to 20 000 USD at market, along one market or several.
func (a *account) swap(ctx context.Context) error {
	request, _, err := a.exchangeOf(int(a.between(1, longestPath)))
	if err != nil {
		return err
	}
	request.Type = exchange.MarketSwap
	return a.place(ctx, place{}, request)
}

// placeSwap waits until a swap yields up to 0.2 % more, or a little less, than it would cost now.
func (a *account) placeSwap(ctx context.Context) error {
	request, worth, err := a.exchangeOf(int(a.between(1, longestPath)))
	if err != nil {
		return err
	}
	request.Type, request.MinOutput = exchange.LimitSwap, scale(worth, a.between(-5, 20))
	return a.place(ctx, place{}, request)
}

// exchangeOf describes a swap along a path of at most so many markets, and tells about what it yields at the marks.
func (a *account) exchangeOf(hops int) (exchange.OrderRequest, *big.Int, error) {
	m := a.someMarket()
	from := m.Short
	if a.flip() {
		from = m.Long
	}
	path, to := a.path(from, hops)
	dollars := a.between(500, 20_000)
	amount, err := a.worth(from, dollars)
	if err != nil {
		return exchange.OrderRequest{}, nil, err
	}
	out, err := a.worth(to, dollars)
	if err != nil {
		return exchange.OrderRequest{}, nil, err
	}
	return exchange.OrderRequest{
		Collateral: from, CollateralAmount: amount, SwapPath: path, Callback: a.callback(mostCallbackGas),
	}, scale(out, -hopCost*int64(len(path))), nil
}

// path leads from a token through at most so many markets, none of them twice, and ends with the token it returns.
func (a *account) path(from common.Address, hops int) (path []common.Address, to common.Address) {
	markets := a.client().Deployment().Markets
	for _, i := range a.random.Perm(len(markets)) {
		if len(path) == hops {
			break
		}
		if m := markets[i]; m.Long == from || m.Short == from {
			path = append(path, m.Address)
			from = other(m, from)
		}
	}
	return path, from
}

// pathTo is one market that gives a token, and the token it takes.
func (a *account) pathTo(to common.Address) (path []common.Address, from common.Address) {
	return a.path(to, 1)
}

func other(m exchange.Market, token common.Address) common.Address {
	if token == m.Long {
		return m.Short
	}
	return m.Long
}

// payOtherwise lets an increase bring another token, which a market swaps into its collateral.
func (a *account) payOtherwise(request *exchange.OrderRequest) error {
	path, from := a.pathTo(request.Collateral)
	_, have := a.t.deps.Marks.Mark(request.Collateral)
	_, bring := a.t.deps.Marks.Mark(from)
	if have == nil || bring == nil || bring.Sign() <= 0 {
		return errNothingToDo
	}
	worth := new(big.Int).Mul(request.CollateralAmount, have)
	request.CollateralAmount = scale(worth.Quo(worth, bring), hopCost)
	request.Collateral, request.SwapPath = from, path
	return nil
}

// takeOtherwise lets a decrease pay out in another token, in some way.
func (a *account) takeOtherwise(request *exchange.OrderRequest) {
	if a.random.IntN(3) == 0 {
		request.DecreaseSwap = []exchange.DecreaseSwap{exchange.PnlToCollateral,
			exchange.CollateralToPnl}[a.random.IntN(2)]
	}
	if a.random.IntN(4) == 0 {
		request.SwapPath, _ = a.path(request.Collateral, int(a.between(1, longestPath)))
	}
}

// Gas of callbacks: the most the venue allows for a request, and what six orders may share that end with a position.
const (
	mostCallbackGas   = 2_000_000
	sharedCallbackGas = 800_000
)

// callback is none for most requests. Some are counted, and a few use up all the gas they get.
func (a *account) callback(mostGas int64) exchange.Callback {
	c := a.client().Deployment().Contracts
	switch a.random.IntN(16) {
	case 0, 1:
		return exchange.Callback{Contract: c.CallbackCounter, Gas: 150_000}
	case 2:
		gas := mostGas
		if a.flip() {
			gas = a.between(100_000, mostGas)
		}
		return exchange.Callback{Contract: c.GasBurner, Gas: uint64(gas)}
	default:
		return exchange.Callback{}
	}
}

// burden makes the end of a position dear for whoever liquidates it: with orders that end with it, often as many as the
// venue allows, and with a contract that wants to be called.
func (a *account) burden(ctx context.Context, where place, size *big.Int) error {
	if a.flip() {
		c := a.client().Deployment().Contracts
		saved := []common.Address{c.CallbackCounter, c.GasBurner, {}}[a.random.IntN(3)]
		hash, err := a.client().SaveCallback(ctx, a.key, where.market.Address, saved)
		if err := a.wait(ctx, hash, err); err != nil {
			return err
		}
	}
	far, err := a.mark(where, !where.isLong, 2_000)
	if err != nil {
		return err
	}
	orders := int64(mostAutoCancel)
	if a.flip() {
		orders = a.between(1, mostAutoCancel)
	}
	for range orders {
		err := a.place(ctx, where, exchange.OrderRequest{
			Market: where.market.Address, Collateral: where.collateral, Type: exchange.LimitDecrease,
			IsLong: where.isLong, SizeUSD: size,
			TriggerPrice: far, AutoCancel: true,
		})
		if _, reverted := errors.AsType[*exchange.RevertError](err); reverted {
			return nil // orders of an earlier position are still there: as many as the venue allows
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mostAutoCancel is how many orders may end with a position.
const mostAutoCancel = 6
