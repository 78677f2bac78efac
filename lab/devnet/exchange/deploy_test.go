package exchange

import (
	"math/big"
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
