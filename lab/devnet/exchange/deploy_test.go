package exchange

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/contracts"
)

// TestAddressesArePinned: the same deployer gives the same addresses for ever, so that files may name them. A change of
// the order of creation, or of the market token's code, must be deliberate.
func TestAddressesArePinned(t *testing.T) {
	v := lookOnly(t)
	want := map[string]string{
		"roleStore":          "0x8Ad159a275AEE56fb2334DBb69036E9c7baCEe9b",
		"eventEmitter":       "0xfF2Bd636B9Fc89645C2D336aeaDE2E4AbaFe1eA5",
		"orderHandler":       "0xeB1397CAE39e0603387c9b184C4BDC4fbbF04dbc",
		"liquidationHandler": "0x521291e5c6C2b8A98Ad57Ea5f165D25D0BF8F65a",
		"exchangeRouter":     "0x3bb74cbef6D65F38a07f9254F413E6F7B41d54D4",
		"ETH/USD":            "0x104fD7D418E887C4115eA3C700BE6EFc0d3D9E6E",
		"BTC/USD":            "0x6751905717Bba095456855aAB52B0546dc0e4345",
	}
	c := v.d.Contracts
	got := map[string]string{
		"roleStore": c.RoleStore.Hex(), "eventEmitter": c.EventEmitter.Hex(), "orderHandler": c.OrderHandler.Hex(),
		"liquidationHandler": c.LiquidationHandler.Hex(), "exchangeRouter": c.ExchangeRouter.Hex(),
		"ETH/USD": v.market("ETH/USD").Address.Hex(), "BTC/USD": v.market("BTC/USD").Address.Hex(),
	}
	for name, address := range want {
		if got[name] != address {
			t.Errorf("%s is at %s, pinned at %s", name, got[name], address)
		}
	}
}

func TestDeploymentIsComplete(t *testing.T) {
	v := lookOnly(t)
	addresses := reflect.ValueOf(v.d.Contracts)
	for i := range addresses.NumField() {
		address := addresses.Field(i).Interface().(common.Address)
		code, err := v.chain.CodeAt(v.ctx, address, nil)
		if err != nil || len(code) == 0 {
			t.Errorf("no code of %s at %s (%v)", addresses.Type().Field(i).Name, address, err)
		}
	}
	text, err := json.Marshal(v.d)
	if err != nil {
		t.Fatal(err)
	}
	var back Deployment
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, v.d) {
		t.Errorf("the record does not survive JSON: %v\n%s", err, text)
	}
	for _, m := range v.d.Markets {
		for _, token := range []common.Address{m.Long, m.Short} {
			pool, err := v.client.Uint(v.ctx, "POOL_AMOUNT", m.Address, token)
			if err != nil || pool.Sign() == 0 {
				t.Errorf("%s has no liquidity in %s (%v)", m.Name, token, err)
			}
		}
	}
}

func TestDeployerMustBeFresh(t *testing.T) {
	v := lookOnly(t)
	_, err := Deploy(v.ctx, v.chain, DefaultConfig(v.deployer, v.reporter, nil))
	if err == nil || !strings.Contains(err.Error(), "fresh account") {
		t.Errorf("a second deployment: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	cfg := DefaultConfig(testKey("a"), nil, nil)
	cfg.LiquidityUSD = 0
	cfg.Tokens = append(cfg.Tokens, cfg.Tokens[0])
	cfg.Markets = append(cfg.Markets, MarketSpec{Name: "X/USD", Index: "X", Long: "X", Short: "USDC"})
	err := cfg.validate()
	for _, part := range []string{"keys are needed", "liquidity of 0", `token "WETH"`, `market "X/USD"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("no complaint about %q in: %v", part, err)
		}
	}
}

func TestRoles(t *testing.T) {
	v := lookOnly(t)
	for role, prefix := range map[string]string{
		OrderKeeper: "0x40a07f8f", LiquidationKeeper: "0x556c788f", FrozenOrderKeeper: "0xcb6c7bc0",
		AdlKeeper: "0xb37d64ed",
	} {
		if hash := contracts.RoleKey(role).Hex(); !strings.HasPrefix(hash, prefix) {
			t.Errorf("%s is %s, want %s…", role, hash, prefix)
		}
	}
	hasRole := func(account common.Address, role string) bool {
		t.Helper()
		out, err := v.client.read(v.ctx, contracts.RoleStore, v.d.Contracts.RoleStore, "hasRole", account,
			contracts.RoleKey(role))
		if err != nil {
			t.Fatal(err)
		}
		return out[0].(bool)
	}
	for _, keeper := range v.d.Keepers {
		for _, role := range []string{OrderKeeper, LiquidationKeeper, AdlKeeper, FrozenOrderKeeper} {
			if got, want := hasRole(keeper.Address, role), slices.Contains(keeper.Roles, role); got != want {
				t.Errorf("%s has %s: %v, want %v", keeper.Address, role, got, want)
			}
		}
	}
	for _, role := range []string{"CONTROLLER", OrderKeeper} {
		if hasRole(v.d.Deployer, role) {
			t.Errorf("the deployer keeps %s", role)
		}
	}
}

// TestRoleMembers: the holders of a role can be listed, whole and in part; whoever lost it is not among them.
func TestRoleMembers(t *testing.T) {
	v := lookOnly(t)
	ask := func(method string, args ...any) any {
		t.Helper()
		out, err := v.client.read(v.ctx, contracts.RoleStore, v.d.Contracts.RoleStore, method,
			append([]any{contracts.RoleKey("CONTROLLER")}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	members := func(start, end int64) []common.Address {
		t.Helper()
		return ask("getRoleMembers", big.NewInt(start), big.NewInt(end)).([]common.Address)
	}
	all := members(0, 1000)
	if count := ask("getRoleMemberCount").(*big.Int); count.Int64() != int64(len(all)) || len(all) < 10 {
		t.Fatalf("%d members of %v", len(all), count)
	}
	for _, account := range all {
		out, err := v.client.read(v.ctx, contracts.RoleStore, v.d.Contracts.RoleStore, "hasRole", account,
			contracts.RoleKey("CONTROLLER"))
		if err != nil || !out[0].(bool) {
			t.Errorf("%s is listed and does not hold the role (%v)", account, err)
		}
	}
	if slices.Contains(all, v.d.Deployer) || !slices.Contains(all, v.d.Contracts.OrderHandler) {
		t.Errorf("the members are %v: with the deployer, or without the order handler", all)
	}
	if part := members(1, 3); !slices.Equal(part, all[1:3]) || len(members(3, 1)) != 0 ||
		len(members(1000, 2000)) != 0 {
		t.Errorf("a part of the members is %v of %v", part, all)
	}
}

// TestUnauthorized: every guarded door answers Unauthorized with the missing role, before it looks at anything else.
func TestUnauthorized(t *testing.T) {
	v := lookOnly(t)
	stranger := traderKey(0)
	self, c := addressOf(stranger), v.d.Contracts
	none := OracleParams{}
	zero := common.Hash{}
	emptyEvent := reflect.New(contracts.Get(contracts.EventEmitter).
		ABI.Methods["emitEventLog"].Inputs[1].Type.GetType()).Elem().Interface()
	for _, door := range []struct {
		name   contracts.Name
		at     common.Address
		role   string
		method string
		args   []any
	}{
		{contracts.RoleStore, c.RoleStore, "ROLE_ADMIN", "grantRole", []any{self, zero}},
		{contracts.RoleStore, c.RoleStore, "ROLE_ADMIN", "revokeRole", []any{self, zero}},
		{contracts.DataStore, c.DataStore, "CONTROLLER", "setUint", []any{zero, new(big.Int)}},
		{contracts.EventEmitter, c.EventEmitter, "CONTROLLER", "emitEventLog", []any{"X", emptyEvent}},
		{contracts.EventEmitter, c.EventEmitter, "CONTROLLER", "emitEventLog1", []any{"X", zero, emptyEvent}},
		{contracts.EventEmitter, c.EventEmitter, "CONTROLLER", "emitEventLog2", []any{"X", zero, zero, emptyEvent}},
		{contracts.Config, c.Config, "CONFIG_KEEPER", "setUint", []any{zero, []byte{}, new(big.Int)}},
		{contracts.MarketFactory, c.MarketFactory, "MARKET_KEEPER", "createMarket", []any{self, self, self, zero}},
		{contracts.Oracle, c.Oracle, "CONTROLLER", "setPrices", []any{none}},
		{contracts.Oracle, c.Oracle, "CONTROLLER", "clearAllPrices", nil},
		{contracts.RequestVault, c.OrderVault, "CONTROLLER", "transferOut", []any{self, self, new(big.Int)}},
		{contracts.RequestVault, c.OrderVault, "CONTROLLER", "payNative", []any{self, new(big.Int)}},
		{contracts.MarketToken, v.market("ETH/USD").Address, "CONTROLLER", "mint", []any{self, big.NewInt(1)}},
		{contracts.MarketToken, v.market("ETH/USD").Address, "CONTROLLER", "transferOut",
			[]any{self, self, big.NewInt(1)}},
		{contracts.OrderBook, c.OrderBook, "CONTROLLER", "take", []any{zero}},
		{contracts.Router, c.Router, "ROUTER_PLUGIN", "pluginTransfer", []any{self, self, self, big.NewInt(1)}},
		{contracts.OrderHandler, c.OrderHandler, "CONTROLLER", "setSavedCallbackContract", []any{self, self, self}},
		{contracts.OrderHandler, c.OrderHandler, "ORDER_KEEPER|CONTROLLER", "cancelOrder", []any{zero}},
		{contracts.DepositHandler, c.DepositHandler, "ORDER_KEEPER|CONTROLLER", "cancelDeposit", []any{zero}},
		{contracts.OrderHandler, c.OrderHandler, OrderKeeper, "executeOrder", []any{zero, none}},
		{contracts.LiquidationHandler, c.LiquidationHandler, LiquidationKeeper, "executeLiquidation",
			[]any{self, self, self, true, none}},
		{contracts.DepositHandler, c.DepositHandler, OrderKeeper, "executeDeposit", []any{zero, none}},
		{contracts.WithdrawalHandler, c.WithdrawalHandler, OrderKeeper, "executeWithdrawal", []any{zero, none}},
		{contracts.ShiftHandler, c.ShiftHandler, OrderKeeper, "executeShift", []any{zero, none}},
		{contracts.GlvDepositHandler, c.GlvDepositHandler, OrderKeeper, "executeGlvDeposit", []any{zero, none}},
		{contracts.GlvWithdrawalHandler, c.GlvWithdrawalHandler, OrderKeeper, "executeGlvWithdrawal",
			[]any{zero, none}},
		{contracts.GlvShiftHandler, c.GlvShiftHandler, OrderKeeper, "executeGlvShift", []any{zero, none}},
		{contracts.AdlHandler, c.AdlHandler, AdlKeeper, "updateAdlState", []any{self, true, none}},
		{contracts.AdlHandler, c.AdlHandler, AdlKeeper, "executeAdl",
			[]any{self, self, self, true, big.NewInt(1), none}},
		{contracts.GlvFactory, c.GlvFactory, "MARKET_KEEPER", "createGlv", []any{self, self, zero}},
		{contracts.GlvFactory, c.GlvFactory, "CONFIG_KEEPER", "addMarketToGlv", []any{self, self}},
		{contracts.GlvToken, v.d.Glvs[0].Address, "CONTROLLER", "mint", []any{self, big.NewInt(1)}},
	} {
		name, args := v.simulate(stranger, call{to: &door.at, data: pack(door.name, door.method, door.args...),
			gas: keeperGas})
		if name != "Unauthorized" || args[0] != self || args[1] != door.role {
			t.Errorf("%s.%s: %s %v, want Unauthorized for %s", door.name, door.method, name, args, door.role)
		}
	}
}

func TestLastAdminStays(t *testing.T) {
	v := lookOnly(t)
	revoke := call{
		to:   &v.d.Contracts.RoleStore,
		data: pack(contracts.RoleStore, "revokeRole", v.d.Deployer, contracts.RoleKey("ROLE_ADMIN")),
		gas:  gasToConfigure,
	}
	v.refused(v.deployer, revoke, "ThereMustBeAtLeastOneRoleAdmin")
}

// TestParameters: what is set through Config can be read from the log, what is not can only be read by call.
func TestParameters(t *testing.T) {
	v := newVenue(t, nil)
	announced := map[common.Hash]*big.Int{}
	for _, e := range v.history() {
		if e.name == "SetUint" {
			key := common.Hash(e.items["baseKey"].([32]byte))
			if data := e.items["data"].([]byte); len(data) > 0 {
				key = crypto.Keccak256Hash(key.Bytes(), data)
			}
			announced[key] = e.int("value")
		}
	}
	m := v.market("ETH/USD").Address
	for _, c := range []struct {
		name   string
		args   []any
		silent bool
	}{
		{"MIN_COLLATERAL_USD", nil, false},
		{"MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", []any{m}, false},
		{"POSITION_FEE_FACTOR", []any{m, true}, false},
		{"POSITION_FEE_FACTOR", []any{m, false}, false},
		{"INCREASE_ORDER_GAS_LIMIT", nil, false},
		{"REQUEST_EXPIRATION_TIME", nil, true},
		{"MAX_ORACLE_PRICE_AGE", nil, true},
		{"LIQUIDATION_RATIO_FACTOR", nil, true},
	} {
		stored, err := v.client.Uint(v.ctx, c.name, c.args...)
		if err != nil || stored.Sign() == 0 {
			t.Fatalf("%s%v is %v (%v)", c.name, c.args, stored, err)
		}
		value, told := announced[contracts.Key(c.name, c.args...)]
		if told == c.silent || (told && value.Cmp(stored) != 0) {
			t.Errorf("%s%v: stored %s, announced %v (%v)", c.name, c.args, stored, value, told)
		}
	}

	receipt := v.must(v.client.SetUint(v.ctx, v.deployer, "LIQUIDATION_RATIO_FACTOR", factor(11, 10)))
	e := v.has(v.events(receipt), "SetUint")
	if e.kind != "EventLog1" || e.topics[2] != contracts.BaseKey("LIQUIDATION_RATIO_FACTOR") {
		t.Errorf("SetUint as %s with topic1 %s", e.kind, e.topics[2])
	}
	data := pack(contracts.Config, "setUint", contracts.BaseKey("POOL_AMOUNT"), contracts.Encode(m, m), big.NewInt(1))
	v.refused(v.deployer, call{to: &v.d.Contracts.Config, data: data, gas: gasToConfigure}, "InvalidBaseKey")
}

func TestOracleRefusals(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	order := v.order(trader, trade(m, MarketIncrease, true))
	now := v.now()
	for want, spoil := range map[string]func(*OracleParams){
		"EmptyValidatedPrices":                 func(p *OracleParams) { *p = OracleParams{} },
		"InvalidOracleSetPricesProvidersParam": func(p *OracleParams) { p.Providers = p.Providers[:1] },
		"InvalidOracleSetPricesDataParam":      func(p *OracleParams) { p.Data = p.Data[:1] },
		"InvalidOracleProvider":                func(p *OracleParams) { p.Providers[0] = addressOf(trader) },
		"InvalidToken":                         func(p *OracleParams) { p.Data[0], p.Data[1] = p.Data[1], p.Data[0] },
		"EmptyPrimaryPrice": func(p *OracleParams) {
			*p = v.reports(Market{Index: m.Long,
				Long: m.Long, Short: m.Long}, now)
		},
		"PriceAlreadySet": func(p *OracleParams) {
			p.Add(p.Tokens[0], p.Providers[0], p.Data[0])
		},
		"InvalidOracleProviderForToken": func(p *OracleParams) { p.Tokens[0] = addressOf(trader) },
		"InvalidOracleSigner": func(p *OracleParams) {
			p.Data[0] = SignReport(v.keeper, v.client.chainID, m.Index, v.prices[m.Index], now)
		},
		"InvalidMinMaxForPrice": func(p *OracleParams) {
			price := v.prices[m.Index]
			p.Data[0] = SignReport(v.reporter, v.client.chainID, m.Index,
				Price{Min: new(big.Int).Add(price.Max, big.NewInt(1)), Max: price.Max}, now)
		},
		"MaxOracleTimestampRangeExceeded": func(p *OracleParams) {
			p.Data[0] = SignReport(v.reporter, v.client.chainID, m.Index, v.prices[m.Index], now+61)
		},
	} {
		params := v.reports(m, now)
		spoil(&params)
		v.refused(v.keeper, v.executeOrder(order, params), want)
	}
	elsewhere := v.reports(m, now)
	elsewhere.Data[0] = SignReport(v.reporter, big.NewInt(56), m.Index, v.prices[m.Index], now)
	v.refused(v.keeper, v.executeOrder(order, elsewhere), "InvalidOracleSigner")
}

// history is every event since the deployment.
func (v *venue) history() []event {
	v.t.Helper()
	var pointers []*types.Log
	for _, log := range v.logs() {
		pointers = append(pointers, &log)
	}
	return v.events(&types.Receipt{Logs: pointers})
}

// logs are the EventEmitter's since the deployment.
func (v *venue) logs() []types.Log {
	v.t.Helper()
	logs, err := v.chain.FilterLogs(v.ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(v.d.Block), Addresses: []common.Address{v.d.Contracts.EventEmitter},
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return logs
}
