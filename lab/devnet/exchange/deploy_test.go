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
