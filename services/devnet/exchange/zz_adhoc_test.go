package exchange

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

func TestAdhocJudge(t *testing.T) {
	v := newVenue(t, nil)
	v.liveEveryEvent()
	m := v.market("ETH/USD")
	a, b, c := v.account(), v.account(), v.account()
	v.setPrice("WETH", 3_000_000_000, 3_001_000_000)
	v.setPrice("USDC", 999_800, 1_000_100)
	v.open(a, m, true, 90_000, 3_000)
	v.open(b, m, false, 50_000, 2_000)
	v.open(c, m, false, 150_000, 5_000)
	logs, err := v.chain.FilterLogs(v.ctx, ethereum.FilterQuery{FromBlock: big.NewInt(0), Addresses: []common.Address{v.d.Contracts.EventEmitter}})
	if err != nil {
		t.Fatal(err)
	}
	emitter := chain.Address(v.d.Contracts.EventEmitter)
	d, router, book := gmx.NewDecoder(emitter), gmx.NewRouter(emitter, 1000), perp.NewBook()
	writers := map[perp.RowKey]chain.Hash{}
	for i := 0; i < len(logs); {
		var tx []chain.Log
		j := i
		for ; j < len(logs) && logs[j].TxHash == logs[i].TxHash; j++ {
			tx = append(tx, chainLog(logs[j]))
		}
		i = j
		routes, err := router.Route(tx)
		if err != nil {
			t.Fatal(err)
		}
		events, err := d.Transaction(tx, uint64(tx[0].Block)*1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if err := perp.Apply(book, e); err != nil {
				t.Fatal(err)
			}
		}
		for k, l := range tx {
			part, err := d.Transaction([]chain.Log{l}, 0)
			if err != nil {
				continue
			}
			for _, e := range part {
				for _, row := range e.Touches() {
					if w, ok := writers[row]; ok && w != routes[k] {
						t.Errorf("two writers of %v", row)
					}
					writers[row] = routes[k]
				}
			}
		}
	}
	healthy, liquidatable := 0, 0
	for _, px := range []int64{2_900, 2_950, 2_960, 2_970, 2_980, 2_985, 2_990, 3_000, 3_020, 3_040, 3_060, 3_070, 3_080, 3_090, 3_100, 3_150} {
		v.setPrice("WETH", px*1_000_000, px*1_000_000+700_000)
		for _, row := range book.Rows(perp.Positions) {
			p := row.(perp.Position)
			if p.Status != perp.Active {
				continue
			}
			prices := map[chain.Address]perp.Price{}
			for token, price := range v.prices {
				lo, _ := perp.UintFromBig(price.Min)
				hi, _ := perp.UintFromBig(price.Max)
				prices[chain.Address(token)] = perp.Price{Min: lo, Max: hi}
			}
			params := v.reports(m, v.now())
			sp := gmx.SetPrices{Data: params.Data}
			for i := range params.Tokens {
				sp.Tokens = append(sp.Tokens, chain.Address(params.Tokens[i]))
				sp.Providers = append(sp.Providers, chain.Address(params.Providers[i]))
			}
			ratio := book.Get(perp.RowKey{Table: perp.Parameters, Key: perp.DataStoreKey("LIQUIDATION_RATIO_FACTOR")})
			fire := perp.One
			if ratio != nil {
				fire = ratio.(perp.Parameter).Uint()
			}
			verdict, err := perp.Judge(p, perp.Circumstances{Rows: book, Prices: prices, FireRatio: fire})
			if err != nil {
				t.Fatal(err)
			}
			data := gmx.ExecuteLiquidation(p.Account, p.Market, p.CollateralToken, p.IsLong, sp)
			_, err = v.chain.CallContract(v.ctx, ethereum.CallMsg{From: addressOf(v.keeper), To: &v.d.Contracts.LiquidationHandler, Data: data, Gas: keeperGas}, nil)
			if err == nil {
				liquidatable++
				if !verdict.Liquidatable {
					t.Errorf("chain liquidates, we do not: %+v", verdict)
				}
				continue
			}
			var de rpc.DataError
			errors.As(err, &de)
			text, _ := de.ErrorData().(string)
			r := gmx.DecodeRevert(common.FromHex(text))
			rem, _ := r.Int("remainingCollateralUsd")
			minc, _ := r.Int("minCollateralUsd")
			lev, _ := r.Int("minCollateralUsdForLeverage")
			healthy++
			if r.Class != gmx.Recovered || verdict.Liquidatable || rem != verdict.RemainingCollateralUsd || minc != verdict.MinCollateralUsd.Int() || lev != verdict.MinCollateralUsdForLeverage.Int() {
				t.Errorf("chain %v; we %+v (fire %s)", r, verdict, fire)
			}
		}
	}
	t.Logf("healthy %d, liquidatable %d, positions %d", healthy, liquidatable, len(book.Rows(perp.Positions)))
	// A real liquidation judged by its receipt.
	v.setPrice("WETH", 2_900_000_000, 2_900_000_000)
	rc := v.run(v.keeper, v.liquidate(addressOf(a), m.Short, m, true))
	var rl []chain.Log
	for _, l := range rc.Logs {
		rl = append(rl, chainLog(*l))
	}
	key := perp.PositionKey(chain.Address(addressOf(a)), chain.Address(m.Address), chain.Address(m.Short), true)
	o, err := d.Outcome(rl, key)
	t.Log(rc.Status, o, err)
	if o.Result != gmx.Liquidated {
		t.Error("not liquidated")
	}
}
