package gmx

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// plain are words by which the parts of a limit can be told apart.
var plain = GasWords{
	IncreaseOrder: 10_000_000, DecreaseOrder: 11_000_000, SwapOrder: 12_000_000, SingleSwap: 20_000, Deposit: 9_000_000,
	Withdrawal: 8_000_000, Shift: 9_500_000,
	GlvPerMarket: 3_000, GlvDeposit: 5_000_000, GlvWithdrawal: 6_000_000, GlvShift: 11_500_000, Additional: 100_000,
	Forwarded:     1_000_000,
	ErrorHandling: 1_200_000, MaxCallback: 2_000_000, Refund: 200_000, OraclePrice: 250_000,
}

// limitOf adds what comes before an execution, and the margin on everything, to what is demanded.
func limitOf(prices, demanded uint64) uint64 {
	return percent(gasBegin+250_000*prices+demanded, marginAll)
}

// What the exchange demands at the start of an execution, by its own formulas.
func TestLimitPassesTheEntryCheck(t *testing.T) {
	order := func(o perp.OrderType, swaps int, callback uint64) Work {
		return Work{Kind: job.Order, OrderType: o, Prices: 2, Swaps: swaps, Callback: callback}
	}
	for name, c := range map[string]struct {
		work     Work
		demanded uint64
	}{
		"market increase":      {order(perp.MarketIncrease, 0, 0), 10_100_000},
		"limit increase":       {order(perp.LimitIncrease, 2, 0), 10_140_000},
		"stop increase":        {order(perp.StopIncrease, 0, 7_000), 10_107_000},
		"market decrease":      {order(perp.MarketDecrease, 1, 0), 11_120_000},
		"limit decrease":       {order(perp.LimitDecrease, 0, 0), 11_100_000},
		"stop-loss":            {order(perp.StopLossDecrease, 0, 0), 11_100_000},
		"market swap":          {order(perp.MarketSwap, 3, 0), 12_160_000},
		"limit swap":           {order(perp.LimitSwap, 1, 0), 12_120_000},
		"deposit":              {Work{Kind: job.Deposit, Prices: 2, Swaps: 2, Callback: 5}, 9_140_005},
		"withdrawal":           {Work{Kind: job.Withdrawal, Prices: 2, Swaps: 1}, 8_120_000},
		"shift":                {Work{Kind: job.Shift, Prices: 2, Callback: 5}, 9_600_005},
		"GLV deposit":          {Work{Kind: job.GlvDeposit, Prices: 2, Markets: 2, Swaps: 1}, 14_126_000},
		"GLV deposit of share": {Work{Kind: job.GlvDeposit, Prices: 2, Markets: 3, MarketTokens: true}, 5_109_000},
		"GLV withdrawal":       {Work{Kind: job.GlvWithdrawal, Prices: 2, Markets: 2, Callback: 5}, 14_106_005},
		"GLV shift":            {Work{Kind: job.GlvShift, Prices: 2, Markets: 5}, 11_600_000},
	} {
		if got, want := plain.Limit(c.work), limitOf(2, c.demanded); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := plain.Limit(order(perp.MarketIncrease, 0, 7_000_000)); got != MaxGas {
		t.Errorf("more than a transaction may have: %d", got)
	}
}

// What an execution needs where the words demand less than that, or nothing.
func TestLimitCoversTheWork(t *testing.T) {
	words := plain
	words.IncreaseOrder, words.DecreaseOrder, words.SwapOrder, words.Deposit, words.Withdrawal, words.Shift = 0, 0, 0,
		0, 0, 0
	words.GlvDeposit, words.GlvWithdrawal, words.GlvShift, words.SingleSwap = 0, 0, 0, 0
	work := func(gas uint64) uint64 { return percent(gas, marginMeasured) }
	for name, c := range map[string]struct {
		work   Work
		needed uint64
	}{
		"increase": {Work{Kind: job.Order, OrderType: perp.LimitIncrease, Swaps: 1},
			work(gasIncrease+gasOrderSwap) + 1_000_000},
		"swap": {Work{Kind: job.Order, OrderType: perp.MarketSwap, Swaps: 3},
			work(gasSwapOrder+3*gasOrderSwap) + 1_000_000},
		"a callback": {Work{Kind: job.Shift, Callback: 500_000}, work(gasShift) + kept(700_000) + gasCallback +
			1_000_000},
		"one token":   {Work{Kind: job.Deposit, OneToken: true}, work(gasDeposit) + 1_000_000},
		"two tokens":  {Work{Kind: job.Deposit}, work(gasDeposit+gasSecondToken) + 1_000_000},
		"withdrawal":  {Work{Kind: job.Withdrawal, Swaps: 1}, work(gasWithdrawal+gasRequestSwap) + 1_000_000},
		"GLV deposit": {Work{Kind: job.GlvDeposit, Markets: 2}, work(gasGlvDeposit+2*gasGlvMarket) + 1_000_000},
		"GLV share": {Work{Kind: job.GlvDeposit, Markets: 2, MarketTokens: true},
			work(gasGlvTokens+2*gasGlvMarket) + 1_000_000},
		"GLV withdrawal": {Work{Kind: job.GlvWithdrawal, Markets: 2}, work(gasGlvWithdrawal+2*gasGlvMarket) +
			1_000_000},
		"GLV shift":   {Work{Kind: job.GlvShift, Markets: 2}, work(gasGlvShift+2*gasGlvMarket) + 1_000_000},
		"liquidation": {Work{Kind: job.Liquidation}, work(gasLiquidation)},
		"saved callback": {Work{Kind: job.Liquidation, SavedCallback: true}, work(gasLiquidation) + kept(2_000_000) +
			gasSavedCallback},
		"deleveraging":    {Work{Kind: job.Adl}, work(gasAdl)},
		"its state":       {Work{Kind: job.AdlState}, work(gasAdlState)},
		"nothing we know": {Work{Kind: "another"}, 0},
		// The last of the orders costs less than the exchange wants to be left before it is cancelled.
		"one order ends with it": {Work{Kind: job.Liquidation, AutoCancel: []uint64{0}},
			work(gasLiquidation) + 1_200_000},
		"three orders end": {Work{Kind: job.Adl, AutoCancel: []uint64{0, 0, 0}}, work(gasAdl) + 2*gasCancel +
			1_200_000},
		"two orders of a closing": {Work{Kind: job.Order, OrderType: perp.MarketDecrease, AutoCancel: []uint64{0, 0}},
			work(gasDecrease) + gasCancel + 2_200_000},
		// The last of these costs more.
		"two with callbacks": {
			Work{Kind: job.Liquidation, AutoCancel: []uint64{2_000_000, 2_000_000}},
			work(gasLiquidation) + 2*(gasCancel+gasCancelCallback+kept(2_200_000)),
		},
	} {
		if got, want := words.Limit(c.work), limitOf(0, c.needed); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	words.Forwarded = 0
	if got, want := words.Limit(Work{Kind: job.Shift}), limitOf(0, kept(work(gasShift))); got != want {
		t.Errorf("where less is forwarded than is kept back by every call: %d, want %d", got, want)
	}
}

// More to do, and words that ask for more, never make a limit smaller; and no limit is above what a transaction may
// have.
func TestLimitNeverFalls(t *testing.T) {
	gas := rapid.Uint64Range(0, MaxGas)
	rapid.Check(t, func(t *rapid.T) {
		words := DefaultGasWords()
		for _, name := range GasWordNames() {
			words.Set(name, chain.U64(gas.Draw(t, name)))
		}
		work := Work{
			Kind:      rapid.SampledFrom(job.Kinds()).Draw(t, "kind"),
			OrderType: perp.OrderType(rapid.IntRange(0, 8).Draw(t, "type")),
			Prices:    rapid.IntRange(0, 12).Draw(t, "prices"), Swaps: rapid.IntRange(0, 6).Draw(t, "swaps"),
			Callback:   gas.Draw(t, "callback"),
			AutoCancel: rapid.SliceOfN(gas, 0, 11).Draw(t, "orders"), SavedCallback: rapid.Bool().Draw(t, "saved"),
			Markets: rapid.IntRange(0, 20).Draw(t, "markets"), OneToken: rapid.Bool().Draw(t, "one token"),
		}
		before := words.Limit(work)
		if before > MaxGas {
			t.Fatalf("%d", before)
		}
		name := rapid.SampledFrom(GasWordNames()).Draw(t, "raised")
		more, harder := words, work
		word := reflect.ValueOf(&more).Elem().Field(gasWords[name])
		word.SetUint(word.Uint() + gas.Draw(t, "by"))
		harder.Prices, harder.Swaps, harder.Markets = work.Prices+1, work.Swaps+1, work.Markets+1
		harder.AutoCancel = append([]uint64{0}, work.AutoCancel...)
		harder.SavedCallback, harder.OneToken, harder.Callback = true, false, work.Callback+1
		if after := more.Limit(work); after < before {
			t.Fatalf("%s is higher, and the limit %d, not %d", name, after, before)
		}
		if after := words.Limit(harder); after < before {
			t.Fatalf("there is more to do, and the limit %d, not %d", after, before)
		}
	})
}

func TestGasWordsOf(t *testing.T) {
	word := func(name string, value chain.Uint) perp.Parameter {
		return perp.Parameter{Key: perp.DataStoreKey(name), Value: value.Bytes32()}
	}
	want := DefaultGasWords()
	want.Shift, want.MaxCallback, want.SingleSwap = 7, MaxGas, 0
	got := GasWordsOf([]perp.Parameter{
		word("SHIFT_GAS_LIMIT", chain.U64(7)), word("REQUEST_EXPIRATION_TIME", chain.U64(300)),
		word("SINGLE_SWAP_GAS_LIMIT", chain.U64(0)),
		word("MAX_CALLBACK_GAS_LIMIT", chain.Pow10(40)),
	})
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	names, keys := GasWordNames(), GasWordKeys()
	if fields := reflect.TypeFor[GasWords]().NumField(); len(names) != fields || len(keys) != fields ||
		keys[0] != perp.DataStoreKey(names[0]) {
		t.Errorf("%d fields, %d names, %d keys", fields, len(names), len(keys))
	}
}

// Whoever adds a word on gas is told here what else it needs: a default, and a place in what the scanner audits. A word
// that no audit reads is unknown until the exchange sets it again.
func TestGasWordsAreAudited(t *testing.T) {
	defaults := reflect.ValueOf(DefaultGasWords())
	for _, name := range GasWordNames() {
		word := perp.WordName{Name: name, Kind: perp.UintWord, Scope: perp.OfVenue}
		if !slices.Contains(perp.Catalogue(), word) {
			t.Errorf("%s is never audited; add it to catalogue in pkg/perp/word.go", name)
		}
		if defaults.Field(gasWords[name]).IsZero() {
			t.Errorf("%s has no default; add it to DefaultGasWords in pkg/gmx/gas_words.go", name)
		}
	}
}

func TestRaisedLimit(t *testing.T) {
	entry := func(starting, estimated, additional uint64) Revert {
		data := selector("InsufficientExecutionGas(uint256,uint256,uint256)")
		return DecodeRevert(appendNumber(appendNumber(appendNumber(data[:], int(starting)), int(estimated)),
			int(additional)))
	}
	for name, c := range map[string]struct {
		revert Revert
		want   uint64
	}{
		"what is missing is told": {entry(5_271_237, 5_900_000, 1_000_000),
			percent(6_000_000+1_628_763, marginAll)},
		"more than there can be":      {entry(5_271_237, 14_900_000, 1_000_000), MaxGas},
		"nothing is missing":          {entry(5_271_237, 3_000_000, 1_000_000), MaxGas},
		"some check on the way fails": {Revert{Class: NeedsGas, Name: "InsufficientGasForAutoCancellation"}, MaxGas},
		"its data are cut":            {Revert{Class: NeedsGas, Name: "InsufficientExecutionGas"}, MaxGas},
		"no reason":                   {DecodeRevert(nil), MaxGas},
	} {
		if got := RaisedLimit(6_000_000, c.revert); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
