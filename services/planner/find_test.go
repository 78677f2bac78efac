package planner

import (
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/wire"
)

var (
	eth, btc, usdc = chain.Address{1}, chain.Address{2}, chain.Address{3}
	ethMarket      = perp.Market{MarketToken: chain.Address{10}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	btcMarket      = perp.Market{MarketToken: chain.Address{11}, IndexToken: btc, LongToken: btc, ShortToken: usdc}
	alice, bob     = chain.Address{20}, chain.Address{21}
)

const nowMs = 1_700_000_000_000

func dollarsPerEther(usd uint64) perp.Uint { return perp.U64(usd).Mul(perp.Pow10(12)) }

func report(token chain.Address, price perp.Uint) wire.Price {
	return wire.Price{Token: token, Min: price, Max: price, TimeMs: nowMs}
}

// sample is a world at nowMs with ETH at $4500 and nothing open.
func sample() world {
	rows := rowIndex{}
	add(rows, []perp.Market{ethMarket, btcMarket})
	add(rows, []perp.Parameter{
		{Key: perp.DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", ethMarket.MarketToken.Hash()), Value: perp.Pow10(28).Bytes32()},
		{Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME"), Value: perp.U64(300).Bytes32()},
	})
	return world{
		block: chain.BlockRef{Number: 7, Hash: chain.Hash{7}, TimeMs: nowMs}, generation: 1, rows: rows,
		reports: map[chain.Address]wire.Price{
			eth: report(eth, dollarsPerEther(4500)), btc: report(btc, perp.U64(9).Mul(perp.Pow10(26))), usdc: report(usdc, perp.Pow10(24)),
		},
	}
}

func newFinder() *finder {
	return &finder{signers: []chain.Address{{100}, {101}}, liquidation: liquidation.DefaultConfig()}
}

func order(kind perp.OrderType, trigger uint64) perp.Order {
	return perp.Order{
		Key: chain.Hash{byte(kind), byte(trigger)}, Account: alice, Market: ethMarket.MarketToken, InitialCollateralToken: usdc, OrderType: kind,
		IsLong: true, TriggerPrice: dollarsPerEther(trigger), UpdatedAtTime: perp.U64(nowMs/1000 - 10), Status: perp.Created, Changes: 1,
		Birth: perp.Stamp{TimeMs: nowMs - 10_000},
	}
}

// long is a long of $10 000 opened at $5000 with so many dollars of collateral.
func long(account chain.Address, collateralUSD uint64) perp.Position {
	p := perp.Position{
		Account: account, Market: ethMarket.MarketToken, CollateralToken: usdc, IsLong: true, Status: perp.Active, Changes: 1,
		SizeInUsd: perp.U64(10_000).Mul(perp.One), SizeInTokens: perp.U64(2).Mul(perp.Pow10(18)),
		CollateralAmount: perp.U64(collateralUSD).Mul(perp.Pow10(6)), IncreasedAtTime: perp.U64(nowMs/1000 - 100),
	}
	p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p
}

func find(t *testing.T, f *finder, w world) []job.Job {
	t.Helper()
	jobs, err := f.find(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func ids(jobs []job.Job) []string {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// PIPE-4: what is executable is found, what is not is left alone.
func TestOrdersThatAreDue(t *testing.T) {
	open := long(alice, 5000)
	for name, c := range map[string]struct {
		order func() perp.Order
		due   bool
	}{
		"market order":          {func() perp.Order { return order(perp.MarketIncrease, 0) }, true},
		"limit above the price": {func() perp.Order { return order(perp.LimitIncrease, 4600) }, true},
		"limit below the price": {func() perp.Order { return order(perp.LimitIncrease, 4400) }, false},
		"take profit reached":   {func() perp.Order { return order(perp.LimitDecrease, 4400) }, true},
		"stop loss reached":     {func() perp.Order { return order(perp.StopLossDecrease, 4600) }, true},
		"stop loss not reached": {func() perp.Order { return order(perp.StopLossDecrease, 4400) }, false},
		"updated": {func() perp.Order {
			o := order(perp.MarketDecrease, 0)
			o.Status = perp.Updated
			return o
		}, true},
		"executed": {func() perp.Order {
			o := order(perp.MarketIncrease, 0)
			o.Status = perp.Executed
			return o
		}, false},
		"frozen, without the role": {func() perp.Order {
			o := order(perp.LimitIncrease, 4600)
			o.Status = perp.Frozen
			return o
		}, false},
		"expired market order": {func() perp.Order {
			o := order(perp.MarketIncrease, 0)
			o.UpdatedAtTime = perp.U64(nowMs/1000 - 301)
			return o
		}, false},
		"not valid yet": {func() perp.Order {
			o := order(perp.LimitIncrease, 4600)
			o.ValidFromTime = perp.U64(nowMs/1000 + 60)
			return o
		}, false},
		"stop loss of a closed position": {func() perp.Order {
			o := order(perp.StopLossDecrease, 4600)
			o.IsLong = false
			o.TriggerPrice = dollarsPerEther(4400)
			return o
		}, false},
		"swap path through an unknown market": {func() perp.Order {
			o := order(perp.MarketIncrease, 0)
			o.SwapPath = []chain.Address{{99}}
			return o
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sample()
			w.positions, w.orders = []perp.Position{open}, []perp.Order{c.order()}
			if jobs := find(t, newFinder(), w); (len(jobs) == 1) != c.due {
				t.Errorf("found %v, due %v", ids(jobs), c.due)
			}
		})
	}
}

func TestJobCarriesWhatTheSenderNeeds(t *testing.T) {
	w := sample()
	o := order(perp.MarketIncrease, 0)
	o.SwapPath = []chain.Address{btcMarket.MarketToken}
	w.orders = []perp.Order{o}
	j := find(t, newFinder(), w)[0]
	if !slices.Equal(j.Tokens, []chain.Address{eth, usdc, btc}) {
		t.Errorf("tokens %v", j.Tokens)
	}
	if j.ID != job.OrderID(o.Key, 1) || j.Class != job.ClassMarketOrder || j.BirthMs != nowMs-10_000 || j.ExpiresMs != nowMs-10_000+300_000 {
		t.Errorf("%+v", j)
	}
	if j.Signer != job.Route(alice, newFinder().signers) || j.Evidence.Block != w.block || len(j.Evidence.Reports) != 3 {
		t.Errorf("signer %v, evidence %+v", j.Signer, j.Evidence)
	}
}

func TestFrozenOrdersNeedTheRole(t *testing.T) {
	w := sample()
	o := order(perp.LimitIncrease, 4600)
	o.Status = perp.Frozen
	w.orders = []perp.Order{o}
	f := newFinder()
	f.frozenRole = true
	if jobs := find(t, f, w); len(jobs) != 1 || !jobs[0].Frozen {
		t.Errorf("found %v", ids(jobs))
	}
}

func TestRequestsThatAreDue(t *testing.T) {
	w := sample()
	deposit := perp.Request{
		Kind: perp.Deposit, Key: chain.Hash{1}, Account: alice, Market: ethMarket.MarketToken, UpdatedAtTime: perp.U64(nowMs / 1000),
		Status: perp.Created, Fields: perp.Fields{"longTokenSwapPath": []chain.Address{btcMarket.MarketToken}},
	}
	late, done := deposit, deposit
	late.Key, late.UpdatedAtTime = chain.Hash{2}, perp.U64(nowMs/1000-301)
	done.Key, done.Status = chain.Hash{3}, perp.Executed
	w.requests = []perp.Request{deposit, late, done}
	jobs := find(t, newFinder(), w)
	if len(jobs) != 1 || jobs[0].ID != job.RequestID(job.Deposit, deposit.Key) || !slices.Equal(jobs[0].Tokens, []chain.Address{eth, usdc, btc}) {
		t.Errorf("found %+v", jobs)
	}
}

// LIQ-6: the lowest margin ratio comes first, and liquidations before everything else.
func TestLiquidationsComeFirst(t *testing.T) {
	w := sample()
	w.positions = []perp.Position{long(alice, 1050), long(bob, 1010)}
	w.orders = []perp.Order{order(perp.MarketIncrease, 0)}
	var l live
	got := l.update(find(t, newFinder(), w), false)
	if len(got) != 3 || got[0].Account != bob || got[1].Account != alice || got[2].Kind != job.Order {
		t.Errorf("order of jobs: %v", ids(got))
	}
}

// A position that changed after the newest report would be refused by the venue; it is judged with the next report.
func TestFreshPositionWaitsForAReport(t *testing.T) {
	w := sample()
	p := long(alice, 1050)
	p.IncreasedAtTime = perp.U64(nowMs/1000 + 1)
	w.positions = []perp.Position{p}
	if jobs := find(t, newFinder(), w); len(jobs) != 0 {
		t.Errorf("found %v", ids(jobs))
	}
}

// TIER-9: the birth of a price-born job is the first report of its unbroken run; a break gives a new birth.
func TestBirthOfAPriceBornJob(t *testing.T) {
	f, w := newFinder(), sample()
	w.positions = []perp.Position{long(alice, 1050)}
	at := func(ms uint64, usd uint64) []job.Job {
		r := report(eth, dollarsPerEther(usd))
		r.TimeMs = ms
		w.reports[eth] = r
		return find(t, f, w)
	}
	if j := at(nowMs+1_700, 4500); j[0].BirthMs != nowMs+1_000 {
		t.Errorf("born at %d", j[0].BirthMs)
	}
	if j := at(nowMs+5_200, 4500); j[0].BirthMs != nowMs+1_000 {
		t.Errorf("after a later report born at %d", j[0].BirthMs)
	}
	if j := at(nowMs+6_000, 5000); len(j) != 0 {
		t.Errorf("recovered, but found %v", ids(j))
	}
	if j := at(nowMs+9_900, 4500); j[0].BirthMs != nowMs+9_000 {
		t.Errorf("dipped again, born at %d", j[0].BirthMs)
	}
}

// New jobs are published at once, live ones again at every sweep, and after a failed publication all of them.
func TestLive(t *testing.T) {
	a, b := job.Job{ID: "a"}, job.Job{ID: "b"}
	var l live
	for i, step := range []struct {
		jobs  []job.Job
		sweep bool
		want  []string
	}{
		{[]job.Job{a}, false, []string{"a"}},
		{[]job.Job{a}, false, nil},
		{[]job.Job{a, b}, false, []string{"b"}},
		{[]job.Job{b, a}, true, []string{"a", "b"}},
		{[]job.Job{b}, false, nil},
		{[]job.Job{a, b}, false, []string{"a"}},
	} {
		if got := ids(l.update(step.jobs, step.sweep)); !slices.Equal(got, step.want) {
			t.Errorf("step %d: published %v, want %v", i, got, step.want)
		}
	}
	l.forget()
	if got := l.update([]job.Job{a, b}, false); len(got) != 2 {
		t.Errorf("after a failure only %v was published again", ids(got))
	}
}

func TestBadSettingsAreAllNamed(t *testing.T) {
	var s Settings
	if err := s.Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 3 {
		t.Errorf("want three problems: %v", err)
	}
	s = DefaultConfig().Planner
	s.Signers = []chain.Address{{1}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
