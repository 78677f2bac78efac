package gmxtest

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Documented is one event as the interface of the contracts documents it.
type Documented struct {
	Name   string
	Topics []string          // names of the words in topic 1 and 2
	Items  map[string]string // name → Solidity type
}

// Each line of events.txt is an event of v2.2: Name topics:a,b type:item,item type:item.
//
//go:embed events.txt
var documentedEvents string

// Events returns every documented event. An event that has two sets of items appears twice.
func Events() []Documented { return parsed() }

var parsed = sync.OnceValue(func() (events []Documented) {
	for line := range strings.Lines(documentedEvents) {
		words := strings.Fields(line)
		e := Documented{Name: words[0], Items: map[string]string{}}
		for _, w := range words[1:] {
			kind, names, _ := strings.Cut(w, ":")
			for name := range strings.SplitSeq(names, ",") {
				if kind == "topics" && name != "" {
					e.Topics = append(e.Topics, name)
				} else if kind != "topics" {
					e.Items[name] = kind
				}
			}
		}
		events = append(events, e)
	}
	return events
})

// The owner that samples name where an event asks for one; its position is a long.
var (
	Account    = chain.Address{0xac}
	Market     = chain.Address{0x3a}
	Collateral = chain.Address{0xc0}
)

// Fields returns a value for each documented item, of its type; the given ones stand in place of the samples. A
// position key that is not given is that of the position's parts.
func (e Documented) Fields(given perp.Fields) perp.Fields {
	items := perp.Fields{}
	for name, kind := range e.Items {
		items[name] = sample(name, kind)
	}
	maps.Copy(items, given)
	account, isPosition := items["account"].(chain.Address)
	if _, has := items["positionKey"]; has && isPosition && given["positionKey"] == nil && items["isLong"] != nil {
		//nolint:forcetypeassert // given with other types they are a mistake of the test
		market, collateral, isLong := items["market"].(chain.Address), items["collateralToken"].(chain.Address),
			items["isLong"].(bool)
		items["positionKey"] = perp.PositionKey(account, market, collateral, isLong)
	}
	return items
}

// Log returns the log of the event with the items of [Documented.Fields]. Topics follow the items of their name.
func (e Documented) Log(emitter chain.Address, given perp.Fields) chain.Log {
	items := e.Fields(given)
	topics := []chain.Hash{}
	for _, name := range e.Topics {
		topics = append(topics, topic(name, items[name]))
	}
	return Log(emitter, e.Name, topics, items)
}

// Event is [Documented.Log] of a documented event by name. It panics on an unknown name.
func Event(emitter chain.Address, name string, given perp.Fields) chain.Log {
	return documented(name).Log(emitter, given)
}

func documented(name string) Documented {
	for _, e := range Events() {
		if e.Name == name {
			return e
		}
	}
	panic(fmt.Sprintf("no event %s is documented", name))
}

// Decrease returns the two logs of a decrease with the given items of PositionDecrease: the fees of its order, then
// itself.
func Decrease(emitter chain.Address, given perp.Fields) []chain.Log {
	decrease := documented("PositionDecrease")
	fees := perp.Fields{}
	for name, value := range decrease.Fields(given) {
		if name == "orderKey" || name == "positionKey" || name == "market" || name == "collateralToken" {
			fees[name] = value
		}
	}
	return []chain.Log{Event(emitter, "PositionFeesCollected", fees), decrease.Log(emitter, given)}
}

// sample derives a value from the item's name, so that every run makes the same.
func sample(name, kind string) any {
	seed := chain.Keccak256([]byte(name))
	switch name {
	case "account":
		return Account
	case "market":
		return Market
	case "collateralToken":
		return Collateral
	case "orderType":
		return chain.U64(2)
	case "isIncrease":
		return false
	case "positionKey":
		return perp.PositionKey(Account, Market, Collateral, true)
	}
	switch kind {
	case "address":
		return seed.Address()
	case "address[]":
		return []chain.Address{seed.Address()}
	case "uint256":
		return chain.UintFromBytes(seed[:8])
	case "int256":
		return chain.UintFromBytes(seed[:8]).Int().Neg()
	case "bool":
		return true
	case "bytes32":
		return seed
	case "bytes32[]":
		return []chain.Hash{seed}
	case "bytes":
		return perp.Bytes(seed[:5])
	case "string":
		return "some " + name
	}
	panic(fmt.Sprintf("item %s: no sample of type %s", name, kind))
}

// topic is the word of an item; a topic that is no item is the sample market or a word of its own.
func topic(name string, item any) chain.Hash {
	switch v := item.(type) {
	case chain.Address:
		return v.Hash()
	case chain.Hash:
		return v
	case chain.Uint:
		return v.Bytes32()
	}
	if name == "market" {
		return Market.Hash()
	}
	return chain.Keccak256([]byte(name))
}
