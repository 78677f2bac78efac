package recordings

import (
	"encoding/json"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// A market's tokens are told apart by what its positions were opened at; the logs carry no symbol.
func TestSymbolsFindTheirTokens(t *testing.T) {
	sol := chain.Address{0x14}
	position := func(market chain.Address, price chain.Uint) perp.Position {
		tokens := chain.U64(7).Mul(chain.Pow10(9))
		return perp.Position{PositionKey: chain.Keccak256(market[:]), Market: market, SizeInTokens: tokens,
			SizeInUsd: tokens.Mul(price)}
	}
	onEth, onBtc := position(ethMarket, chain.U64(5_000).Mul(chain.Pow10(12))),
		position(btcMarket, chain.U64(50_000).Mul(chain.Pow10(22)))
	onSol := position(chain.Address{0x50}, chain.U64(150).Mul(chain.Pow10(12)))
	eth := perp.Market{MarketToken: ethMarket, IndexToken: weth, LongToken: weth, ShortToken: usdc}
	btc := perp.Market{MarketToken: btcMarket, IndexToken: wbtc, LongToken: wbtc, ShortToken: usdc}
	three := perp.Market{MarketToken: onSol.Market, IndexToken: sol, LongToken: weth, ShortToken: usdc}
	single := perp.Market{MarketToken: ethMarket, IndexToken: weth, LongToken: weth, ShortToken: weth}
	book := perp.NewBook()
	for _, row := range []perp.Row{onEth, onBtc, onSol, eth, btc, three} {
		book.Put(row)
	}
	for name, test := range map[string]struct {
		given  string
		tokens string
		market perp.Market
		want   string // of WETH, WBTC, SOL and USDC what the market has, or a part of the complaint
	}{
		"two tokens":               {`{"WETH":4000,"USDC":1}`, "", eth, "4000000000000000 1000000000000000000000000"},
		"far from where it opened": {`{"WETH":0.5,"USDC":"1.02"}`, "", eth, "500000000000 1020000000000000000000000"},
		"eight decimals": {`{"WBTC":48787.09672,"USDC":1}`, "", btc,
			"487870967200000000000000000 1000000000000000000000000"},
		"more than are needed": {`{"WBTC":60000,"SOL":150,"USDC":1,"WETH":5100}`, "", eth,
			"5100000000000000 1000000000000000000000000"},
		"three tokens": {`{"WETH":4000,"SOL":200,"USDC":1}`, "", three,
			"4000000000000000 200000000000000 1000000000000000000000000"},
		"one token":             {`{"WETH":4000}`, "", single, "4000000000000000"},
		"a symbol nobody knows": {`{"STETH":4000,"USDC":1}`, "", eth, "4000000000000000 1000000000000000000000000"},
		"unknown decimals":      {`{"WETH":4000,"ZUSD":1}`, "", eth, "cannot tell how many decimals ZUSD has"},
		"told by the flag": {`{"STETH":4000,"ZUSD":1}`, "STETH=" + weth.Hex() + ":18,ZUSD=" + usdc.Hex() + ":6", eth,
			"4000000000000000 1000000000000000000000000"},
		"by address": {`{"` + weth.Hex() + `":4000,"` + usdc.Hex() + `":1}`, "A=" + usdc.Hex() + ":6", eth,
			"4000000000000000 1000000000000000000000000"},
		"one missing": {`{"WETH":4000}`, "", eth, "no prices for the 2 tokens"},
		"alike":       {`{"WETH":4000,"WBNB":4100,"USDC":1}`, "", eth, "cannot tell which symbol is which token"},
		"nothing":     {`{"WETH":0,"USDC":1}`, "", eth, "price of WETH"},
	} {
		t.Run(name, func(t *testing.T) {
			names, err := parseTokens(test.tokens)
			if err != nil {
				t.Fatal(err)
			}
			var given map[string]casePrice
			if err := json.Unmarshal([]byte(test.given), &given); err != nil {
				t.Fatal(err)
			}
			prices, err := names.prices(given, test.market, openedAt(book))
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("complaint %q, want %q", err, test.want)
				}
				return
			}
			var got []string
			for _, token := range []chain.Address{weth, wbtc, sol, usdc} {
				if price, known := prices[token]; known {
					got = append(got, price.Min.String())
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}
