package exchange

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/lab/devnet/contracts"
)

// event is a decoded log of the EventEmitter: its items by name.
type event struct {
	name   string
	kind   string
	topics []common.Hash
	sender common.Address
	items  map[string]any
}

func (e event) int(key string) *big.Int {
	v, ok := e.items[key].(*big.Int)
	if !ok {
		panic(fmt.Sprintf("%s has no number %q", e.name, key))
	}
	return v
}

// itemNames lists "type key" of every item, sorted.
func (e event) itemNames() []string {
	var names []string
	for key, value := range e.items {
		names = append(names, fmt.Sprintf("%T %s", value, key))
	}
	slices.Sort(names)
	return names
}

func decodeEvent(topics []common.Hash, data []byte) (event, error) {
	definition, err := contracts.Get(contracts.EventEmitter).ABI.EventByID(topics[0])
	if err != nil {
		return event{}, fmt.Errorf("topic0: %w", err)
	}
	values, err := definition.Inputs.NonIndexed().Unpack(data)
	if err != nil {
		return event{}, fmt.Errorf("unpacking: %w", err)
	}
	e := event{name: values[1].(string), kind: definition.Name, topics: topics, sender: values[0].(common.Address),
		items: map[string]any{}}
	for _, group := range reflect.ValueOf(values[2]).Fields() {
		for _, list := range group.Fields() {
			for k := range list.Len() {
				e.items[list.Index(k).Field(0).String()] = list.Index(k).Field(1).Interface()
			}
		}
	}
	return e, nil
}

// events decodes the EventEmitter's logs of a receipt, in order.
func (v *venue) events(receipt *types.Receipt) []event {
	v.t.Helper()
	var events []event
	for _, log := range receipt.Logs {
		if log.Address != v.d.Contracts.EventEmitter {
			continue
		}
		e, err := decodeEvent(log.Topics, log.Data)
		if err != nil {
			v.t.Fatalf("log %d of %s: %v", log.Index, log.TxHash, err)
		}
		events = append(events, e)
	}
	return events
}

func names(events []event) []string {
	var list []string
	for _, e := range events {
		list = append(list, e.name)
	}
	return list
}

func find(events []event, name string) (event, bool) {
	i := slices.IndexFunc(events, func(e event) bool { return e.name == name })
	if i < 0 {
		return event{}, false
	}
	return events[i], true
}

// has returns the first event of that name, which must be there.
func (v *venue) has(events []event, name string) event {
	v.t.Helper()
	e, ok := find(events, name)
	if !ok {
		v.t.Fatalf("no %s in %v", name, names(events))
	}
	return e
}

func revertOf(err error) (string, []any, bool) {
	var data rpc.DataError
	if !errors.As(err, &data) {
		return "", nil, false
	}
	text, _ := data.ErrorData().(string)
	return contracts.RevertReason(common.FromHex(text))
}

func TestEventTopics(t *testing.T) {
	want := map[string]string{
		"EventLog":  "0x7e3bde2ba7aca4a8499608ca57f3b0c1c1c93ace63ffd3741a9fab204146fc9a",
		"EventLog1": "0x137a44067c8961cd7e1d876f4754a5a3a75989b4552f1843fc69c3b372def160",
		"EventLog2": "0x468a25a7ba624ceea6e540ad6f49171b52495b648417ae91bca21676d8a24dc5",
	}
	for name, topic := range want {
		if got := contracts.Get(contracts.EventEmitter).ABI.Events[name].ID.Hex(); got != topic {
			t.Errorf("%s: topic0 is %s, want %s", name, got, topic)
		}
	}
}

func TestSelectors(t *testing.T) {
	for _, c := range []struct {
		contract contracts.Name
		method   string
		want     string
	}{
		{contracts.OrderHandler, "executeOrder", "0x7ebc83f7"},
		{contracts.LiquidationHandler, "executeLiquidation", "0x109ebc49"},
		{contracts.DepositHandler, "executeDeposit", "0xc30d8910"},
		{contracts.WithdrawalHandler, "executeWithdrawal", "0xc96fea9f"},
		{contracts.AdlHandler, "updateAdlState", "0x12a758f0"},
		{contracts.AdlHandler, "executeAdl", "0xf09f032d"},
		{contracts.ShiftHandler, "executeShift", "0xc68f53c1"},
		{contracts.GlvDepositHandler, "executeGlvDeposit", "0x5ee8ec8f"},
		{contracts.GlvWithdrawalHandler, "executeGlvWithdrawal", "0x0910f3f9"},
		{contracts.GlvShiftHandler, "createGlvShift", "0x04cae4ca"},
		{contracts.GlvShiftHandler, "executeGlvShift", "0xbf1fb411"},
	} {
		if got := fmt.Sprintf("%#x", contracts.Get(c.contract).ABI.Methods[c.method].ID); got != c.want {
			t.Errorf("%s.%s: selector %s, want %s", c.contract, c.method, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"EmptyOrder":                             "0x16307797",
		"EmptyDeposit":                           "0x95b66fe9",
		"EmptyWithdrawal":                        "0x6d4bb5e9",
		"Unauthorized":                           "0xa35b150b",
		"RequestNotYetCancellable":               "0xe8266438",
		"OracleTimestampsAreSmallerThanRequired": "0x7d677abf",
		"OracleTimestampsAreLargerThanRequestExpirationTime": "0xd84b8ee8",
		"MaxPriceAgeExceeded":                                "0x2b6e7c3f",
		"MaxOracleTimestampRangeExceeded":                    "0xdd9c6b9a",
		"EmptyPrimaryPrice":                                  "0xcd64a025",
		"InvalidOracleProvider":                              "0x05d102a2",
		"InvalidOracleProviderForToken":                      "0x68b49e6c",
		"InvalidOrderPrices":                                 "0x0481a15a",
		"OrderValidFromTimeNotReached":                       "0xcf9319d6",
		"InvalidKeeperForFrozenOrder":                        "0xe5feddc0",
		"OrderNotFulfillableAtAcceptablePrice":               "0xe09ad0e9",
		"PositionShouldNotBeLiquidated":                      "0xee919dd9",
		"DisabledFeature":                                    "0xdd70e0c9",
		"DisabledMarket":                                     "0x09f8c937",
		"InvalidDecreaseOrderSize":                           "0x9fbe2cbc",
		"InsufficientExecutionGas":                           "0xbb416f93",
		"EmptyShift":                                         "0x6af5e96f",
		"GlvDepositNotFound":                                 "0x057058b6",
		"GlvWithdrawalNotFound":                              "0x20dcb068",
		"GlvShiftNotFound":                                   "0xde45e162",
		"AdlNotEnabled":                                      "0x3285dc57",
		"AdlNotRequired":                                     "0xd06ed8be",
		"InvalidAdl":                                         "0x1d4fc3c0",
		"PnlOvercorrected":                                   "0x9f0bc7de",
		"InvalidSizeDeltaForAdl":                             "0x720bb461",
	} {
		id := contracts.Get(contracts.Errors).ABI.Errors[name].ID
		if got := fmt.Sprintf("%#x", id[:4]); got != want {
			t.Errorf("%s: selector %s, want %s", name, got, want)
		}
	}
}
