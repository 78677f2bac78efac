package recordings

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var versionFixtures = []string{"twoside", "solvent", "upgrade"}

// beside reads a file that stands beside a recording, or skips where the recordings are not at hand.
func beside(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtureDir(), name))
	if err != nil {
		t.Skipf("no recording %s; set GMX_FIXTURES to its directory", name)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// What the contracts of v2.2c store, and those of v2.2b before an upgrade left behind, is what the log folds to: the
// saved funding factor included, which is in no event.
func TestStateOfTheOriginalContracts(t *testing.T) {
	for _, name := range versionFixtures {
		t.Run(name, func(t *testing.T) {
			var chainState struct {
				Positions                    []map[string]any
				MarketState                  []map[string]any
				VirtualInventoryForPositions []map[string]any
			}
			beside(t, name+".state.json", &chainState)
			state := fixture(t, name)
			facts := 0
			for _, want := range chainState.Positions {
				got := entity(t, state, "positions", "positionKey", want["positionKey"].(string))
				for field, value := range want {
					if is := got[field]; !strings.HasSuffix(field, "ClaimableFundingAmountPerSize") && is != value {
						t.Errorf("position %s: %s is %v, the chain says %v", want["positionKey"], field, is, value)
					}
					facts++
				}
			}
			values := measures(t, state)
			for _, m := range chainState.MarketState {
				facts += compareMarket(t, values, m)
			}
			if facts < 100 {
				t.Errorf("only %d facts were compared", facts)
			}
		})
	}
}

// measureKey names a measure of a market as text.
type measureKey struct {
	measure, market, token string
	isLong                 bool
}

// measures are the values of all markets' measures, and the seconds of their stamps as measure "…At".
func measures(t *testing.T, state map[string]any) map[measureKey]string {
	t.Helper()
	values := map[measureKey]string{}
	for _, v := range entities(state, "marketValues") {
		scope, err := chain.ParseHash(v["scope"].(string))
		if err != nil {
			t.Fatal(err)
		}
		key := measureKey{v["measure"].(string), scope.Address().Hex(), v["token"].(string), v["isLong"].(bool)}
		values[key] = v["value"].(string)
		key.measure += "At"
		values[key] = strings.TrimSuffix(v["stamp"].(map[string]any)["timeMs"].(string), "000")
	}
	return values
}

// compareMarket compares what the chain has of a market, and returns how much it was. What was never set is zero.
func compareMarket(t *testing.T, values map[measureKey]string, m map[string]any) (facts int) {
	t.Helper()
	none := chain.Address{}.Hex()
	compare := func(name, token string, isLong bool, want any) {
		facts++
		got := values[measureKey{name, m["market"].(string), token, isLong}]
		if got != want && (got != "" || want != "0") {
			t.Errorf("%s: %s of %s, long %v, is %q, the chain says %v", m["name"], name, token, isLong, got, want)
		}
	}
	for _, e := range m["bySide"].([]any) {
		e := e.(map[string]any)
		isLong := e["isLong"].(bool)
		compare("cumulativeBorrowingFactor", none, isLong, e["cumulativeBorrowingFactor"])
		compare("cumulativeBorrowingFactorAt", none, isLong, e["cumulativeBorrowingFactorUpdatedAt"])
	}
	for _, e := range m["byToken"].([]any) {
		e := e.(map[string]any)
		for _, name := range []string{"poolAmount", "swapImpactPoolAmount"} {
			compare(name, e["token"].(string), false, e[name])
		}
	}
	for _, e := range m["byCollateralAndSide"].([]any) {
		e := e.(map[string]any)
		for _, name := range []string{"openInterest", "openInterestInTokens", "collateralSum",
			"fundingFeeAmountPerSize", "claimableFundingAmountPerSize"} {
			compare(name, e["collateralToken"].(string), e["isLong"].(bool), e[name])
		}
	}
	compare("fundingFactorPerSecondAt", none, false, m["fundingUpdatedAt"])
	for _, name := range []string{"positionImpactPoolAmount", "lentPositionImpactPoolAmount",
		"totalPendingImpactAmount"} {
		compare(name, none, false, m[name])
	}
	compare("savedFundingFactorPerSecond", none, false,
		m["notInEvents"].(map[string]any)["savedFundingFactorPerSecond"])
	return facts
}

// nextFunding is what the venue's Reader says of a market's funding at a time and prices.
type nextFunding struct {
	AsOfBlock, BlockTimestamp   uint64
	Market                      chain.Address
	Name                        string
	Prices                      map[string]casePrice
	SavedFundingFactorPerSecond chain.Int
	Chain                       struct {
		FundingFactorPerSecond          chain.Uint
		NextSavedFundingFactorPerSecond chain.Int
		FundingFeeAmountPerSizeDelta    struct {
			Long, Short struct{ LongToken, ShortToken chain.Uint }
		}
	}
}

// The next funding of every market at every checkpoint is what the Reader says: the factor that would be saved, and by
// how much the amounts per size grow.
func TestNextFundingOfTheOriginalContracts(t *testing.T) {
	for _, name := range versionFixtures {
		t.Run(name, func(t *testing.T) {
			var wanted []nextFunding
			beside(t, name+".nextfunding.json", &wanted)
			asked := map[uint64][]nextFunding{}
			for _, w := range wanted {
				asked[w.AsOfBlock] = append(asked[w.AsOfBlock], w)
			}
			compared := 0
			foldBlocks(t, name, func(f *fold) {
				for _, w := range asked[f.seen.LastBlock] {
					compareNextFunding(t, f, w)
					compared++
				}
			})
			if compared != len(wanted) || compared == 0 {
				t.Errorf("%d of %d were compared", compared, len(wanted))
			}
		})
	}
}

// foldBlocks folds a recording by its rules and shows the state after each block.
func foldBlocks(t *testing.T, name string, after func(*fold)) {
	t.Helper()
	r, file, err := openRecording(filepath.Join(fixtureDir(), name+".jsonl.gz"), nil)
	if err != nil {
		t.Skipf("no recording: %v", err)
	}
	defer file.Close()
	f := &fold{book: perp.NewBook(), oracle: map[chain.Address]perp.Price{}, cases: &cases{}}
	if f.rules, err = readRules(filepath.Join(fixtureDir(), name+".rules.json")); err != nil {
		t.Fatal(err)
	}
	for {
		logs, timeMs, err := r.transaction()
		if errors.Is(err, io.EOF) {
			after(f)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.seen.Logs > 0 && logs[0].Block != f.seen.LastBlock {
			after(f)
		}
		if err := f.transaction(logs, timeMs); err != nil {
			t.Fatal(err)
		}
	}
}

func compareNextFunding(t *testing.T, f *fold, w nextFunding) {
	t.Helper()
	market := f.book.Get(perp.RowKey{Table: perp.Markets, Key: w.Market.Hash()}).(perp.Market)
	prices, err := tokenNames{}.prices(w.Prices, market, f.worth())
	if err != nil {
		t.Fatal(err)
	}
	measure := func(m perp.Measure, token chain.Address, isLong bool) chain.Int {
		v, _ := f.book.Get(perp.MarketValueKey(m, w.Market.Hash(), token, isLong)).(perp.MarketValue)
		return v.Value
	}
	saved := measure(perp.SavedFundingFactorPerSecond, chain.Address{}, false)
	if saved != w.SavedFundingFactorPerSecond {
		t.Errorf("%s, block %d: %s is saved, the chain says %s", w.Name, w.AsOfBlock, saved,
			w.SavedFundingFactorPerSecond)
	}
	// the Reader of these recordings is of v2.2c, also while handlers of v2.2b rule
	reader := chain.Address{1}
	rows := overlay{f.book, map[perp.RowKey]perp.Row{}}
	for _, p := range []perp.Parameter{perp.HandlerVersion(reader, perp.V22c),
		perp.HandlerVersion(chain.Address{}, perp.V22c)} {
		rows.Put(p)
	}
	terms, err := perp.NewView(perp.Circumstances{Rows: rows, Prices: prices, Time: w.BlockTimestamp}).Terms(w.Market)
	if err != nil {
		t.Fatal(err)
	}
	times := chain.U64(1)
	if market.LongToken == market.ShortToken {
		times = chain.U64(2) // the Reader gives what is added twice
	}
	delta := w.Chain.FundingFeeAmountPerSizeDelta
	for _, side := range []struct {
		isLong bool
		token  chain.Address
		want   chain.Uint
	}{{true, market.LongToken, delta.Long.LongToken}, {true, market.ShortToken, delta.Long.ShortToken},
		{false, market.LongToken, delta.Short.LongToken}, {false, market.ShortToken, delta.Short.ShortToken}} {
		got, _ := terms.Funding(side.isLong, side.token)
		stored := measure(perp.FundingFeeAmountPerSize, side.token, side.isLong).Uint()
		if got = got.Sub(stored); got != side.want.Mul(times) {
			t.Errorf("%s, block %d: long %v in %s grows by %s, the chain says %s", w.Name, w.AsOfBlock, side.isLong,
				side.token, got, side.want)
		}
	}
	showing := perp.MarketValue{Measure: perp.FundingFactorPerSecond, Scope: w.Market.Hash(),
		Value: w.Chain.FundingFactorPerSecond.Int(),
		Stamp: perp.Stamp{Block: w.AsOfBlock, TimeMs: w.BlockTimestamp * 1000}}
	event := perp.MarketValued{Values: []perp.MarketValue{showing}, Handler: reader}
	if err := perp.Apply(rows, event); err != nil {
		t.Fatal(err)
	}
	key := perp.MarketValueKey(perp.SavedFundingFactorPerSecond, w.Market.Hash(), chain.Address{}, false)
	if got := rows.put[key].(perp.MarketValue).Value; got != w.Chain.NextSavedFundingFactorPerSecond {
		t.Errorf("%s, block %d: %s would be saved, the chain says %s", w.Name, w.AsOfBlock, got,
			w.Chain.NextSavedFundingFactorPerSecond)
	}
}
