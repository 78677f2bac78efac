package traders

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
)

// action is one thing a trader can do, and how often it is drawn.
type action struct {
	name   string
	weight int
	run    func(*account, context.Context) error
}

// openTight is done on a schedule of its own.
var openTight = action{name: "open tight", run: (*account).openTight}

var actions = []action{
	{"open", 22, (*account).open},
	{"place entry", 7, (*account).placeEntry},
	{"spread entry", 3, (*account).spreadEntry},
	{"protect", 18, (*account).protect},
	{"close", 13, (*account).close},
	{"update order", 9, (*account).updateOrder},
	{"cancel order", 7, (*account).cancelOrder},
	{"deposit", 6, (*account).deposit},
	{"withdraw", 6, (*account).withdraw},
	{"swap", 5, (*account).swap},
	{"place swap", 4, (*account).placeSwap},
}

// pick draws an action by weight.
func pick(random *rand.Rand) action {
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	n := random.IntN(total)
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	panic("unreachable: the weights do not add up")
}

// open takes a new position, or grows one, at market with moderate leverage.
func (a *account) open(ctx context.Context) error {
	return a.increase(ctx, exchange.MarketIncrease, nil)
}

// placeEntry waits for a price up to 0.3 % better (limit) or worse (stop) before it enters.
func (a *account) placeEntry(ctx context.Context) error {
	if a.flip() {
		return a.increase(ctx, exchange.LimitIncrease, big.NewInt(-a.between(1, 30)))
	}
	return a.increase(ctx, exchange.StopIncrease, big.NewInt(a.between(1, 30)))
}

// spreadEntry enters in two to four parts some seconds apart, each at the price of its moment or up to 0.3 % better.
func (a *account) spreadEntry(ctx context.Context) error {
	if a.client().Deployment().Version == contracts.V22B {
		return errNothingToDo
	}
	where := a.somewhere()
	request, err := a.entry(where, exchange.LimitIncrease, 10_000/a.between(2, min(50, maxLeverage)))
	if err != nil {
		return err
	}
	if request.TriggerPrice, err = a.mark(where, where.isLong, a.between(-30, 30)); err != nil {
		return err
	}
	parts := a.between(2, mostParts)
	request.CollateralAmount.Mul(request.CollateralAmount, big.NewInt(parts))
	hash, err := a.client().CreateTwapOrder(ctx, a.key, request, uint64(parts), uint64(a.between(2, 10)))
	if err != nil {
		return err
	}
	return a.placed(ctx, where, request, hash)
}

// mostParts bounds the orders that one spread entry makes.
const mostParts = 4

// increase places an order with a leverage of 2 to 50. shift moves the trigger from the mark, in hundredths of a
// percent, upwards for a long; nil means no trigger.
func (a *account) increase(ctx context.Context, kind exchange.OrderType, shift *big.Int) error {
	where := a.somewhere()
	request, err := a.entry(where, kind, 10_000/a.between(2, min(50, maxLeverage)))
	if err != nil {
		return err
	}
	request.Callback = a.callback(mostCallbackGas)
	if a.random.IntN(5) == 0 {
		if err := a.payOtherwise(&request); err != nil {
			return err
		}
	}
	if shift != nil {
		if request.TriggerPrice, err = a.mark(where, where.isLong, shift.Int64()); err != nil {
			return err
		}
	}
	return a.place(ctx, where, request)
}

// openTight opens a position that a move of MinDistance to MaxDistance will liquidate, where this account has none. If
// it has one everywhere, because prices stand still, it closes one.
func (a *account) openTight(ctx context.Context) error {
	where, free, err := a.freePlace(ctx)
	if err != nil {
		return err
	}
	if !free {
		return a.close(ctx)
	}
	least, err := a.leastCollateral(ctx, where.market)
	if err != nil {
		return err
	}
	share := max(least+a.between(minDistance, maxDistance), 10_000/maxLeverage)
	request, err := a.entry(where, exchange.MarketIncrease, share)
	if err != nil {
		return err
	}
	if err := a.place(ctx, where, request); err != nil || a.random.IntN(burdenOneIn) > 0 {
		return err
	}
	return a.burden(ctx, where, request.SizeUSD)
}

// burdenOneIn is how many tight positions there are for each that is made dear to liquidate.
const burdenOneIn = 4

// freePlace picks a place with the stable token as collateral where the account has no position. It reports false if
// there is none.
func (a *account) freePlace(ctx context.Context) (place, bool, error) {
	open, err := a.positions(ctx)
	if err != nil {
		return place{}, false, err
	}
	var free []place
	for _, m := range a.tradedMarkets() {
		for _, isLong := range []bool{true, false} {
			where := place{market: m, collateral: m.Short, isLong: isLong}
			if _, taken := open[where]; !taken {
				free = append(free, where)
			}
		}
	}
	if len(free) == 0 {
		return place{}, false, nil
	}
	return free[a.random.IntN(len(free))], true, nil
}

// leastCollateral is what a new position needs, in hundredths of a percent of its size, rounded up: the required
// collateral, the fees of opening and closing, and the spread.
func (a *account) leastCollateral(ctx context.Context, m exchange.Market) (int64, error) {
	c := a.client()
	required, err := c.Uint(ctx, "MIN_COLLATERAL_FACTOR", m.Address)
	if err != nil {
		return 0, err
	}
	ratio, err := c.Uint(ctx, "LIQUIDATION_RATIO_FACTOR")
	if err != nil {
		return 0, err
	}
	fee, err := c.Uint(ctx, "POSITION_FEE_FACTOR", m.Address, false)
	if err != nil {
		return 0, err
	}
	low, high := a.t.deps.Marks.Mark(m.Index)
	if low == nil || low.Sign() <= 0 {
		return 0, errNothingToDo
	}
	one := dollars(1) // A factor of 100 % has as many decimals.
	if ratio.Cmp(one) > 0 {
		required.Mul(required, ratio).Quo(required, one)
	}
	required.Add(required, fee).Add(required, fee)
	spread := new(big.Int).Sub(high, low)
	required.Add(required, spread.Mul(spread, one).Quo(spread, low))
	required.Mul(required, big.NewInt(10_000)).Quo(required, one)
	return required.Int64() + 1, nil
}

// entry describes an order of 5 000 to 100 000 USD whose collateral is share hundredths of a percent of the size.
func (a *account) entry(where place, kind exchange.OrderType, share int64) (exchange.OrderRequest, error) {
	_, price := a.t.deps.Marks.Mark(where.collateral)
	if price == nil || price.Sign() <= 0 {
		return exchange.OrderRequest{}, errNothingToDo
	}
	size := dollars(a.between(5_000, 100_000))
	collateral := new(big.Int).Mul(size, big.NewInt(share))
	collateral.Quo(collateral, big.NewInt(10_000)).Quo(collateral, price)
	return exchange.OrderRequest{
		Market: where.market.Address, Collateral: where.collateral, Type: kind, IsLong: where.isLong, SizeUSD: size,
		CollateralAmount: collateral,
	}, nil
}

// protect puts a take-profit or a stop-loss 0.05 to 0.5 % away from the mark beside a position; most of them end with
// it.
func (a *account) protect(ctx context.Context) error {
	where, p, err := a.somePosition(ctx)
	if err != nil {
		return err
	}
	request := exchange.OrderRequest{
		Market: where.market.Address, Collateral: where.collateral, Type: exchange.LimitDecrease, IsLong: where.isLong,
		SizeUSD:    p.SizeInUsd,
		AutoCancel: a.random.IntN(5) > 0,
	}
	distance := a.between(5, 50)
	if a.flip() {
		request.Type, distance = exchange.StopLossDecrease, -distance
	}
	if request.TriggerPrice, err = a.mark(where, !where.isLong, distance); err != nil {
		return err
	}
	request.Callback = a.callback(sharedCallbackGas)
	a.takeOtherwise(&request)
	return a.place(ctx, where, request)
}

// close sells half of a position, or all of it, at market.
func (a *account) close(ctx context.Context) error {
	where, p, err := a.somePosition(ctx)
	if err != nil {
		return err
	}
	size := p.SizeInUsd
	if a.random.IntN(3) == 0 {
		size = new(big.Int).Rsh(size, 1)
	}
	request := exchange.OrderRequest{
		Market: where.market.Address, Collateral: where.collateral, Type: exchange.MarketDecrease, IsLong: where.isLong,
		SizeUSD:  size,
		Callback: a.callback(mostCallbackGas),
	}
	a.takeOtherwise(&request)
	return a.place(ctx, where, request)
}

// updateOrder moves the trigger of a waiting order, or the output it waits for, by up to 0.1 %.
func (a *account) updateOrder(ctx context.Context) error {
	waiting, err := a.someOrder()
	if err != nil {
		return err
	}
	r := &waiting.request
	if shift := a.between(-10, 10); r.Type.Swaps() {
		r.MinOutput = scale(r.MinOutput, shift)
	} else {
		r.TriggerPrice = scale(r.TriggerPrice, shift)
	}
	hash, err := a.client().UpdateOrder(ctx, a.key, waiting.key, *r)
	return a.forgetIfGone(waiting.key, a.wait(ctx, hash, err))
}

func (a *account) cancelOrder(ctx context.Context) error {
	waiting, err := a.someOrder()
	if err != nil {
		return err
	}
	return a.cancelWaiting(ctx, waiting.key)
}

// deposit puts 1 000 to 20 000 USD of one or both tokens into a pool.
func (a *account) deposit(ctx context.Context) error {
	m := a.someMarket()
	request := exchange.DepositRequest{Market: m, Callback: a.callback(mostCallbackGas)}
	var err error
	if request.ShortAmount, err = a.worth(m.Short, a.between(1_000, 20_000)); err != nil {
		return err
	}
	if a.flip() {
		if request.LongAmount, err = a.worth(m.Long, a.between(1_000, 20_000)); err != nil {
			return err
		}
	}
	if a.random.IntN(4) == 0 {
		request.ShortPath, request.ShortToken = a.pathTo(m.Short)
		if request.ShortAmount, err = a.worth(request.ShortToken, a.between(1_000, 20_000)); err != nil {
			return err
		}
	}
	hash, err := a.client().CreateDeposit(ctx, a.key, request)
	return a.wait(ctx, hash, err)
}

// withdraw takes up to half of the account's market tokens out of a pool.
func (a *account) withdraw(ctx context.Context) error {
	m := a.someMarket()
	balance, err := a.client().Balance(ctx, m.Address, a.address)
	if err != nil {
		return err
	}
	amount := balance.Quo(balance, big.NewInt(a.between(2, 6)))
	if amount.Sign() == 0 {
		return errNothingToDo
	}
	request := exchange.WithdrawalRequest{Market: m, MarketTokens: amount, Callback: a.callback(mostCallbackGas)}
	if a.random.IntN(4) == 0 {
		request.ShortPath, _ = a.path(m.Short, int(a.between(1, longestPath)))
	}
	hash, err := a.client().CreateWithdrawal(ctx, a.key, request)
	return a.wait(ctx, hash, err)
}

// place sends an order and remembers what it may lead to.
func (a *account) place(ctx context.Context, where place, request exchange.OrderRequest) error {
	hash, err := a.client().CreateOrder(ctx, a.key, request)
	if err != nil {
		return err
	}
	return a.placed(ctx, where, request, hash)
}

// placed waits for the transaction of a request, and remembers the orders that it has made.
func (a *account) placed(ctx context.Context, where place, request exchange.OrderRequest, hash common.Hash) error {
	if request.Type.Increases() {
		a.places[where] = true
	}
	receipt, err := a.client().Wait(ctx, hash)
	if err != nil {
		return err
	}
	keys := a.client().RequestKeys(receipt, "OrderCreated")
	if len(keys) == 0 {
		return fmt.Errorf("transaction %s created no order", hash)
	}
	if request.TriggerPrice == nil && request.Type != exchange.LimitSwap {
		return nil
	}
	for _, key := range keys {
		if err := a.remember(ctx, order{key: key, request: request}); err != nil {
			return err
		}
	}
	return nil
}
