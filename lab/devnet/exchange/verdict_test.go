package exchange

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// LIQ-5: the keeper's verdict, from the logs alone, is the contract's own, over random positions, prices and ratios,
// most of them close to the threshold. KEEPER_LONG=1 compares more than ten thousand.
func TestVerdictMatchesTheRule(t *testing.T) {
	rounds := 9
	if os.Getenv("KEEPER_LONG") != "" {
		rounds = 170
	}
	v := newVenue(t, func(c *Config) { c.Parameters.MinCollateralUSD = usd(150) })
	random := rand.New(rand.NewPCG(7, 11))
	positions := v.randomPositions(random)

	cases, liquidatable := 0, 0
	for _, ratio := range []*big.Int{new(big.Int), factor(1, 2), factor(1, 1), factor(11, 10),
		factor(1_234_567, 1_000_000)} {
		v.must(v.client.SetUint(v.ctx, v.deployer, "LIQUIDATION_RATIO_FACTOR", ratio))
		book := v.fold()
		for range rounds {
			for _, p := range positions {
				m := v.marketAt(p.Market)
				v.randomPrices(random, p, m)
				want := v.judge(book, p, ratio)
				v.compare(p, m, want)
				cases++
				if want.Liquidatable {
					liquidatable++
				}
			}
		}
	}
	t.Logf("%d cases, %d liquidatable", cases, liquidatable)
	if cases < 60*rounds || liquidatable < cases/5 || liquidatable > cases*4/5 {
		t.Errorf("%d of %d cases are liquidatable: too one-sided a sample", liquidatable, cases)
	}
}

// fold is the state that a keeper has of the exchange at the head.
func (v *venue) fold() *perp.Book {
	v.t.Helper()
	book, decoder := perp.NewBook(), gmx.NewDecoder(chain.Address(v.d.Contracts.EventEmitter))
	var transaction []chain.Log
	apply := func() {
		events, err := decoder.Transaction(transaction, 0)
		if err != nil {
			v.t.Fatal(err)
		}
		for _, handler := range gmx.Speakers(transaction) {
			book.Put(perp.HandlerVersion(handler, perp.V22c))
			book.Put(perp.HandlerVersion(chain.Address{}, perp.V22c))
		}
		for _, e := range events {
			if err := perp.Apply(book, e); err != nil {
				v.t.Fatal(err)
			}
		}
		transaction = nil
	}
	logs := v.logs()
	for i, log := range logs {
		transaction = append(transaction, chainLog(log))
		if i == len(logs)-1 || logs[i+1].TxHash != log.TxHash {
			apply()
		}
	}
	return book
}

// judge is the keeper's verdict on a position, at the present prices and the venue's ratio.
func (v *venue) judge(book *perp.Book, p Position, ratio *big.Int) perp.Verdict {
	v.t.Helper()
	key := perp.PositionKey(chain.Address(p.Account), chain.Address(p.Market), chain.Address(p.CollateralToken),
		p.IsLong)
	position, known := book.Get(perp.RowKey{Table: perp.Positions, Key: key}).(perp.Position)
	if !known {
		v.t.Fatalf("position %s was not folded", key)
	}
	c := perp.Circumstances{Rows: book, Prices: map[chain.Address]perp.Price{}, Time: v.now(),
		FireRatio: v.number(ratio)}
	for token, price := range v.prices {
		c.Prices[chain.Address(token)] = perp.Price{Min: v.number(price.Min), Max: v.number(price.Max)}
	}
	verdict, err := perp.NewView(c).Judge(position)
	if err != nil {
		v.t.Fatal(err)
	}
	return verdict
}

func (v *venue) number(b *big.Int) chain.Uint {
	v.t.Helper()
	u, err := chain.UintFromBig(b)
	if err != nil {
		v.t.Fatal(err)
	}
	return u
}

// compare runs the liquidation as a call and checks the verdict, and the numbers that a refusal carries.
func (v *venue) compare(p Position, m Market, want perp.Verdict) {
	v.t.Helper()
	name, args := v.simulate(v.keeper, v.liquidate(p.Account, p.CollateralToken, m, p.IsLong))
	if want.Liquidatable {
		if name != "" {
			v.t.Errorf("refused with %s %v, the keeper says liquidatable with %s remaining", name, args,
				want.RemainingCollateralUsd)
		}
		return
	}
	numbers := fmt.Sprint(want.RemainingCollateralUsd, want.MinCollateralUsd, want.MinCollateralUsdForLeverage)
	if name != "PositionShouldNotBeLiquidated" || fmt.Sprint(args[1], args[2], args[3]) != numbers {
		v.t.Errorf("got %s %v, want a refusal with %s", name, args, numbers)
	}
}

// randomPositions opens twelve positions of both sides, markets and kinds of collateral.
func (v *venue) randomPositions(random *rand.Rand) []Position {
	v.t.Helper()
	var positions []Position
	for i := range 12 {
		m, isLong := v.d.Markets[i%2], i/2%2 == 0
		collateral := m.Short
		if i >= 6 {
			collateral = m.Long
		}
		trader := v.account()
		size := random.Int64N(200_000_000_000) + 1_000_000_000 // Millionths of a dollar.
		sizeUSD := new(big.Int).Quo(new(big.Int).Mul(usd(1), big.NewInt(size)), big.NewInt(1_000_000))
		value := new(big.Int).Quo(sizeUSD, big.NewInt(random.Int64N(40)+3))
		order := v.order(trader, OrderRequest{
			Market: m.Address, Collateral: collateral, Type: MarketIncrease, IsLong: isLong, SizeUSD: sizeUSD,
			CollateralAmount: value.Quo(value.Add(value, usd(200)), v.prices[collateral].Min),
		})
		v.has(v.fill(order, m), "PositionIncrease")
		p, _, err := v.client.Position(v.ctx, addressOf(trader), m.Address, collateral, isLong)
		if err != nil {
			v.t.Fatal(err)
		}
		positions = append(positions, p)
	}
	return positions
}

// randomPrices moves the index price to where the position has between −0.5 % and 3 % of its size left, with a random
// spread.
func (v *venue) randomPrices(random *rand.Rand, p Position, m Market) {
	v.setPrice("USDC", 990_000+random.Int64N(10_000), 1_000_000+random.Int64N(10_000))
	entry := new(big.Int).Quo(p.SizeInUsd, p.SizeInTokens)
	lever := new(big.Int).Mul(p.CollateralAmount, v.prices[p.CollateralToken].Min)
	// In millionths of the size: the move that eats the collateral, less what is to remain of it.
	move := lever.Mul(lever, big.NewInt(1_000_000)).Quo(lever, p.SizeInUsd).Int64() - (random.Int64N(35_000) - 5_000)
	if p.IsLong {
		move = -move
	}
	price := func(move int64) *big.Int {
		moved := new(big.Int).Mul(entry, big.NewInt(1_000_000+move))
		return moved.Quo(moved, big.NewInt(1_000_000))
	}
	v.prices[m.Index] = Price{Min: price(move - random.Int64N(500)), Max: price(move + random.Int64N(500))}
}

func (v *venue) marketAt(address common.Address) Market {
	return v.d.Markets[slices.IndexFunc(v.d.Markets, func(m Market) bool { return m.Address == address })]
}
