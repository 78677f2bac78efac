package exchange

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"

	"perpkeeper/lab/devnet/contracts"
)

func formerly(c *Config) { c.Version = contracts.V22B }

// speaksV22C looks for what only v2.2c has, in a contract's code and that of the libraries linked into it.
func (v *venue) speaksV22C(contract common.Address, seen map[common.Address]bool) bool {
	v.t.Helper()
	if seen[contract] {
		return false
	}
	seen[contract] = true
	code, err := v.chain.CodeAt(v.ctx, contract, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	key := contracts.BaseKey("MIN_FUNDING_INCREASE_RATE_PER_SECOND")
	if bytes.Contains(code, key[:]) || bytes.Contains(code, common.FromHex("ee3abe87")) {
		return true
	}
	for at := 0; at < len(code); at++ {
		op := vm.OpCode(code[at])
		if op == vm.PUSH20 && at+20 < len(code) &&
			v.speaksV22C(common.BytesToAddress(code[at+1:at+21]), seen) {
			return true
		}
		if op.IsPush() {
			at += int(op - vm.PUSH0)
		}
	}
	return false
}

// Every handler of v2.2c can be told from one of v2.2b by code that is on the chain.
func TestVersionsCanBeTold(t *testing.T) {
	for _, c := range []struct {
		v    *venue
		want bool
	}{{lookOnly(t), true}, {anotherVenue(t, formerly), false}} {
		a := c.v.d.Contracts
		for name, handler := range map[contracts.Name]common.Address{
			contracts.OrderHandler: a.OrderHandler, contracts.LiquidationHandler: a.LiquidationHandler,
			contracts.AdlHandler: a.AdlHandler, contracts.DepositHandler: a.DepositHandler,
			contracts.WithdrawalHandler: a.WithdrawalHandler, contracts.ShiftHandler: a.ShiftHandler,
			contracts.GlvDepositHandler: a.GlvDepositHandler, contracts.GlvShiftHandler: a.GlvShiftHandler,
			contracts.GlvWithdrawalHandler: a.GlvWithdrawalHandler,
		} {
			if got := c.v.speaksV22C(handler, map[common.Address]bool{}); got != c.want {
				t.Errorf("%s of %s: v2.2c %v", name, c.v.d.Version, got)
			}
		}
	}
}

func (v *venue) cancel(handler contracts.Name, at common.Address, method string, key common.Hash) call {
	return call{to: &at, data: pack(handler, method, key), gas: keeperGas}
}

// A keeper clears expired requests away and earns nothing: tokens and fee go to whose they are.
func TestKeeperCancels(t *testing.T) {
	v := newVenue(t, nil)
	m, glv, trader := v.market("ETH/USD"), v.d.Glvs[0], v.provider(v.market("ETH/USD"), 10_000)
	byTokens := GlvDepositRequest{Glv: glv, Market: m, MarketTokens: coins(4_000)}
	v.run(v.keeper, v.executeGlvDeposit(v.requestKey(v.must(v.client.CreateGlvDeposit(v.ctx, trader, byTokens)),
		"GlvDepositCreated")))
	balances := func() string {
		return fmt.Sprint(v.balance(m.Short, addressOf(trader)), v.balance(m.Address, addressOf(trader)),
			v.balance(glv.Address, addressOf(trader)))
	}
	before := balances()
	order := v.order(trader, trade(m, MarketIncrease, true))
	limit := v.order(trader, trade(m, LimitIncrease, true))
	a := v.d.Contracts
	late := map[string]call{"OrderCancelled": v.cancel(contracts.OrderHandler, a.OrderHandler, "cancelOrder", order)}
	for kind, r := range map[string]struct {
		handler contracts.Name
		at      common.Address
		create  func() (common.Hash, error)
	}{
		"Deposit": {contracts.DepositHandler, a.DepositHandler, func() (common.Hash, error) {
			return v.client.CreateDeposit(v.ctx, trader, DepositRequest{Market: m, ShortAmount: big.NewInt(100e6)})
		}},
		"Withdrawal": {contracts.WithdrawalHandler, a.WithdrawalHandler, func() (common.Hash, error) {
			return v.client.CreateWithdrawal(v.ctx, trader, WithdrawalRequest{Market: m, MarketTokens: coins(100)})
		}},
		"Shift": {contracts.ShiftHandler, a.ShiftHandler, func() (common.Hash, error) {
			return v.client.CreateShift(v.ctx, trader,
				ShiftRequest{From: m, To: v.market("SOL/USD"), MarketTokens: coins(100)})
		}},
		"GlvDeposit": {contracts.GlvDepositHandler, a.GlvDepositHandler, func() (common.Hash, error) {
			return v.client.CreateGlvDeposit(v.ctx, trader, byTokens)
		}},
		"GlvWithdrawal": {contracts.GlvWithdrawalHandler, a.GlvWithdrawalHandler, func() (common.Hash, error) {
			return v.client.CreateGlvWithdrawal(v.ctx, trader,
				GlvWithdrawalRequest{Glv: glv, Market: m, GlvTokens: coins(100)})
		}},
	} {
		key := v.requestKey(v.must(r.create()), kind+"Created")
		late[kind+"Cancelled"] = v.cancel(r.handler, r.at, "cancel"+kind, key)
	}
	for _, c := range late {
		v.refused(v.keeper, c, "RequestNotYetCancellable")
		v.refused(trader, c, "Unauthorized")
	}
	early := v.cancel(contracts.OrderHandler, a.OrderHandler, "cancelOrder", limit)
	v.has(v.events(v.run(v.keeper, early)), "OrderCancelled")
	v.advance(301 * time.Second)
	for want, c := range late {
		events := v.events(v.run(v.keeper, c))
		if e := v.has(events, want); e.items["reason"] != "USER_INITIATED_CANCEL" {
			t.Errorf("%s for %q", want, e.items["reason"])
		}
		if e := v.has(events, "KeeperExecutionFee"); e.items["keeper"] != addressOf(trader) {
			t.Errorf("%s pays %s", want, e.items["keeper"])
		}
	}
	if after := balances(); after != before {
		t.Errorf("the account has %s of USDC, market and GLV tokens after the refunds, had %s", after, before)
	}
	old := anotherVenue(t, formerly)
	limit = old.order(old.account(), trade(old.market("ETH/USD"), LimitIncrease, true))
	old.refused(old.keeper, old.cancel(contracts.OrderHandler, old.d.Contracts.OrderHandler, "cancelOrder", limit),
		"Unauthorized")
}

// freeze makes the prices of now the static price of a token.
func (v *venue) freeze(symbol string) []event {
	v.t.Helper()
	var params OracleParams
	token := v.token(symbol)
	params.Add(token, v.d.Contracts.OracleProvider, SignReport(v.reporter, v.client.chainID, token, v.prices[token],
		v.now()))
	return v.events(v.run(v.deployer, call{to: &v.d.Contracts.Config,
		data: pack(contracts.Config, "setStaticPriceForToken", token, params), gas: keeperGas}))
}

// static replaces the report of a token by what its static provider wants: nothing.
func (v *venue) static(symbol string, params OracleParams) OracleParams {
	for i, token := range params.Tokens {
		if token == v.token(symbol) {
			params.Providers[i], params.Data[i] = v.d.Contracts.StaticProvider, nil
		}
	}
	return params
}

// A static price without a spread is executed at; one with a spread comes the wrong way round and refuses everything.
func TestStaticPrice(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.setPrice("WETH", 2_990_000_000, 2_990_000_000)
	events := names(v.freeze("WETH"))
	want := []string{"OraclePriceUpdate", "SetOracleProviderForToken", "SetStaticPriceForToken"}
	if len(events) != len(want) || events[0] != want[0] || events[1] != want[1] || events[2] != want[2] {
		t.Fatalf("freezing a price says %v, want %v", events, want)
	}
	order := v.order(trader, trade(m, MarketIncrease, true))
	v.setPrice("WETH", 1_000_000_000, 1_000_000_000) // Nobody asks any more.
	v.refused(v.keeper, v.executeOrder(order, v.reports(m, v.now())), "InvalidOracleProviderForToken")
	receipt := v.run(v.keeper, v.executeOrder(order, v.static("WETH", v.reports(m, v.now()))))
	if price := v.has(v.events(receipt), "PositionIncrease").int("executionPrice"); price.Cmp(
		USD30(2_990_000_000, 18)) != 0 {
		t.Errorf("executed at %s", price)
	}
	v.setPrice("WBTC", 59_000_000_000, 61_000_000_000)
	v.freeze("WBTC")
	btc := v.market("BTC/USD")
	order = v.order(trader, trade(btc, MarketIncrease, true))
	name, args := v.simulate(v.keeper, v.executeOrder(order, v.static("WBTC", v.reports(btc, v.now()))))
	if name != "InvalidMinMaxForPrice" || args[1].(*big.Int).Cmp(args[2].(*big.Int)) <= 0 {
		t.Errorf("a static price with a spread: %s %v", name, args)
	}
}

// An upgrade under way: requests of before are executed by the new handlers, and by the old ones until these have lost
// their roles.
func TestUpgradeUnderWay(t *testing.T) {
	v := newVenue(t, formerly)
	m, trader := v.market("ETH/USD"), v.account()
	position := func() common.Hash { return v.order(trader, trade(m, MarketIncrease, true)) }
	deposit := func() common.Hash {
		return v.deposit(v.must(v.client.CreateDeposit(v.ctx, trader,
			DepositRequest{Market: m, ShortAmount: big.NewInt(100e6)})))
	}
	orders, deposits := []common.Hash{position(), position()}, []common.Hash{deposit(), deposit()}
	old := v.d
	cfg := DefaultConfig(v.deployer, v.reporter, nil)
	next, err := Upgrade(v.ctx, v.chain, cfg, old)
	if err != nil {
		t.Fatal(err)
	}
	if next.Version != contracts.V22C || old.Version != contracts.V22B ||
		next.Contracts.OrderHandler == old.Contracts.OrderHandler {
		t.Fatalf("upgraded from %+v to %+v", old, next)
	}
	v.has(v.events(v.run(v.keeper, v.executeOrder(orders[0], v.reports(m, v.now())))), "OrderExecuted")
	v.client.Use(next)
	v.d = next
	v.has(v.events(v.run(v.keeper, v.executeDeposit(deposits[0], v.reports(m, v.now())))), "DepositExecuted")
	if err := Retire(v.ctx, v.chain, v.deployer, old); err != nil {
		t.Fatal(err)
	}
	v.has(v.events(v.run(v.keeper, v.executeOrder(orders[1], v.reports(m, v.now())))), "OrderExecuted")
	v.has(v.events(v.run(v.keeper, v.executeDeposit(deposits[1], v.reports(m, v.now())))), "DepositExecuted")
	fresh := position()
	v.d = old
	v.refused(v.keeper, v.executeOrder(fresh, v.reports(m, v.now())), "Unauthorized")
	v.refused(trader, old.orderCall(addressOf(trader), trade(m, MarketIncrease, true)), "Unauthorized")
	v.d = next
	v.has(v.fill(fresh, m), "OrderExecuted")
	v.funded(next, m)
	if err := SetRole(v.ctx, v.chain, v.deployer, next, addressOf(v.keeper), OrderKeeper, false); err != nil {
		t.Fatal(err)
	}
	v.refused(v.keeper, v.executeOrder(position(), v.reports(m, v.now())), "Unauthorized")
}

// funded checks that the bounds of funding, which the new version reads for each side, are set.
func (v *venue) funded(d *Deployment, m Market) {
	v.t.Helper()
	for _, isLong := range []bool{true, false} {
		most, err := v.client.Uint(v.ctx, "MAX_FUNDING_FACTOR_PER_SECOND", m.Address, isLong)
		if err != nil || most.Sign() == 0 {
			v.t.Errorf("no bound of the side %v after the upgrade to %s (%v)", isLong, d.Version, err)
		}
	}
}
