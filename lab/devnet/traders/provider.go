package traders

import (
	"context"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/exchange"
)

// provide is one step of a provider of liquidity; see tour.
var provide = action{name: "provide liquidity", run: (*account).provide}

// tour is what the provider of liquidity does, in this order, again and again: every way in, through and out of pools
// and GLVs is taken soon after trading has begun.
var tour = []func(*account, context.Context, exchange.Glv) error{
	(*account).fillPool, (*account).fillGlv, (*account).shift, (*account).fillGlvWithShares, (*account).shiftGlv,
	(*account).drainGlv,
	(*account).drainPool,
}

// tourPatience is how often a step may find nothing to do, as while keepers have not executed what came before, until
// it is left out.
const tourPatience = 15

// provide takes the next step of the tour.
func (a *account) provide(ctx context.Context) error {
	glvs := a.client().Deployment().Glvs
	if len(glvs) == 0 {
		return errNothingToDo
	}
	err := tour[a.step](a, ctx, glvs[a.random.IntN(len(glvs))])
	if a.waited++; !errors.Is(err, errNothingToDo) || a.waited > tourPatience {
		a.step, a.waited = (a.step+1)%len(tour), 0
	}
	return err
}

// fillPool deposits 4 000 to 20 000 USD into the pool of one of the GLV's markets.
func (a *account) fillPool(ctx context.Context, glv exchange.Glv) error {
	m := a.someMarketOf(glv)
	amount, err := a.worth(m.Short, a.between(4_000, 20_000))
	if err != nil {
		return err
	}
	hash, err := a.client().CreateDeposit(ctx, a.key, exchange.DepositRequest{Market: m, ShortAmount: amount})
	return a.wait(ctx, hash, err)
}

// fillGlv deposits 4 000 to 20 000 USD of one or both tokens into the GLV.
func (a *account) fillGlv(ctx context.Context, glv exchange.Glv) error {
	request := exchange.GlvDepositRequest{Glv: glv, Market: a.someMarketOf(glv)}
	var err error
	if request.ShortAmount, err = a.worth(glv.Short, a.between(4_000, 20_000)); err != nil {
		return err
	}
	if a.flip() {
		if request.LongAmount, err = a.worth(glv.Long, a.between(4_000, 20_000)); err != nil {
			return err
		}
	}
	hash, err := a.client().CreateGlvDeposit(ctx, a.key, request)
	return a.wait(ctx, hash, err)
}

// shift moves a third of what the account has in one pool to another.
func (a *account) shift(ctx context.Context, glv exchange.Glv) error {
	from, held, err := a.richest(ctx, glv, a.address)
	if err != nil {
		return err
	}
	to, err := a.anotherMarket(glv, from)
	if err != nil {
		return err
	}
	hash, err := a.client().
		CreateShift(ctx, a.key, exchange.ShiftRequest{From: from, To: to, MarketTokens: part(held, 3)})
	return a.wait(ctx, hash, err)
}

// fillGlvWithShares deposits a third of the account's market tokens of one pool into the GLV.
func (a *account) fillGlvWithShares(ctx context.Context, glv exchange.Glv) error {
	m, held, err := a.richest(ctx, glv, a.address)
	if err != nil {
		return err
	}
	hash, err := a.client().
		CreateGlvDeposit(ctx, a.key, exchange.GlvDepositRequest{Glv: glv, Market: m, MarketTokens: part(held, 3)})
	return a.wait(ctx, hash, err)
}

// shiftGlv has the GLV's manager move a tenth of what the GLV has in one pool to another.
func (a *account) shiftGlv(ctx context.Context, glv exchange.Glv) error {
	from, held, err := a.richest(ctx, glv, glv.Address)
	if err != nil {
		return err
	}
	to, err := a.anotherMarket(glv, from)
	if err != nil {
		return err
	}
	a.t.manager.Lock()
	defer a.t.manager.Unlock()
	hash, err := a.client().
		CreateGlvShift(ctx, a.t.deps.GlvManager, exchange.GlvShiftRequest{Glv: glv, From: from, To: to,
			MarketTokens: part(held, 10)})
	return a.wait(ctx, hash, err)
}

// drainGlv takes a third of the account's share of the GLV out, through the pool in which the GLV has most; a share
// that is more than a quarter of that pool's part waits.
func (a *account) drainGlv(ctx context.Context, glv exchange.Glv) error {
	m, pool, err := a.richest(ctx, glv, glv.Address)
	if err != nil {
		return err
	}
	held, err := a.client().Balance(ctx, glv.Address, a.address)
	if err != nil {
		return err
	}
	amount := part(held, 3)
	if limit := part(pool, 4); amount.Cmp(limit) > 0 {
		amount = limit
	}
	if amount.Sign() == 0 {
		return errNothingToDo
	}
	hash, err := a.client().
		CreateGlvWithdrawal(ctx, a.key, exchange.GlvWithdrawalRequest{Glv: glv, Market: m, GlvTokens: amount})
	return a.wait(ctx, hash, err)
}

// drainPool takes a third of what the account has in one pool out.
func (a *account) drainPool(ctx context.Context, glv exchange.Glv) error {
	m, held, err := a.richest(ctx, glv, a.address)
	if err != nil {
		return err
	}
	hash, err := a.client().
		CreateWithdrawal(ctx, a.key, exchange.WithdrawalRequest{Market: m, MarketTokens: part(held, 3)})
	return a.wait(ctx, hash, err)
}

// richest is the market of the GLV of which the owner has the most market tokens; there is nothing to do where it has
// none.
func (a *account) richest(ctx context.Context, glv exchange.Glv, owner common.Address) (richest exchange.Market,
	held *big.Int, err error) {
	held = new(big.Int)
	for _, m := range a.client().Deployment().MarketsOf(glv) {
		balance, err := a.client().Balance(ctx, m.Address, owner)
		if err != nil {
			return richest, nil, err
		}
		if balance.Cmp(held) > 0 {
			richest, held = m, balance
		}
	}
	if held.Sign() == 0 {
		return richest, nil, errNothingToDo
	}
	return richest, held, nil
}

func (a *account) someMarketOf(glv exchange.Glv) exchange.Market {
	markets := a.client().Deployment().MarketsOf(glv)
	return markets[a.random.IntN(len(markets))]
}

func (a *account) anotherMarket(glv exchange.Glv, than exchange.Market) (exchange.Market, error) {
	var others []exchange.Market
	for _, m := range a.client().Deployment().MarketsOf(glv) {
		if m.Address != than.Address {
			others = append(others, m)
		}
	}
	if len(others) == 0 {
		return exchange.Market{}, errNothingToDo
	}
	return others[a.random.IntN(len(others))], nil
}

func part(amount *big.Int, of int64) *big.Int { return new(big.Int).Quo(amount, big.NewInt(of)) }
