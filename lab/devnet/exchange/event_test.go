package exchange

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"

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
