package venue

import (
	"bytes"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

// Logs writes the logs of events that end something, as the contracts do. Their places in the chain are the caller's to
// fill in, but for the index.
func Logs(events []perp.Event) (logs []chain.Log) {
	for _, e := range events {
		switch e := e.(type) {
		case perp.OrderEnded:
			logs = append(logs, orderEnd(e))
		case perp.RequestEnded:
			logs = append(logs, write(requestEnd(e.Kind, e.Status), e.Stamp.Log, e.Key))
		case perp.PositionDecreased:
			p := e.Position
			market, collateral := p.Market.Hash(), p.CollateralToken.Hash()
			logs = append(logs, write("PositionFeesCollected", p.Stamp.Log-1, e.OrderKey, p.PositionKey, market,
				collateral),
				write("PositionDecrease", p.Stamp.Log, e.OrderKey, p.PositionKey, market, collateral, p.Account.Hash(),
					perp.BoolWord(p.IsLong),
					p.SizeInUsd.Bytes32(), p.SizeInTokens.Bytes32(), p.CollateralAmount.Bytes32(),
					e.SizeDeltaUsd.Bytes32(),
					number(uint64(e.OrderType)), p.DecreasedAtTime.Bytes32()))
		}
	}
	return logs
}

// orderEnd writes the end of an order. One that was stopped has a cause of any length, so that it has no template.
func orderEnd(e perp.OrderEnded) chain.Log {
	name := "Order" + string(e.Status)
	if e.Status == perp.Executed {
		return write(name, e.Stamp.Log, e.Key)
	}
	given := perp.Fields{"key": e.Key, "account": chain.Address{}, "reason": e.Reason, "reasonBytes": e.ReasonBytes}
	log := gmxtest.Event(EventEmitter, name, given)
	log.Index = e.Stamp.Log
	return log
}

func requestEnd(k perp.RequestKind, s perp.Status) string {
	name := string(k)
	return string(bytes.ToUpper([]byte(name[:1]))) + name[1:] + string(s)
}

// logTemplate is a log with holes, each the places of one word in its data and topics. Encoding a log from its items
// takes 30 to 300 µs, filling a template less than one.
type logTemplate struct {
	log          chain.Log
	data, topics [][]int
}

// holes are those of each event, in the order in which write is given their words; events that are not here have one,
// their key.
var holes = map[string][]string{
	"PositionFeesCollected": {"orderKey", "positionKey", "market", "collateralToken"},
	"PositionDecrease": {
		"orderKey", "positionKey", "market", "collateralToken", "account", "isLong", "sizeInUsd", "sizeInTokens",
		"collateralAmount", "sizeDeltaUsd",
		"orderType", "decreasedAtTime",
	},
}

var (
	templatesMu sync.Mutex
	templates   = map[string]*logTemplate{}
)

// write fills a template.
func write(name string, index uint32, words ...chain.Hash) chain.Log {
	b := templateOf(name)
	log := chain.Log{Address: b.log.Address, Topics: slices.Clone(b.log.Topics), Data: slices.Clone(b.log.Data),
		Index: index}
	for n, word := range words {
		for _, at := range b.data[n] {
			copy(log.Data[at:], word[:])
		}
		for _, at := range b.topics[n] {
			log.Topics[at] = word
		}
	}
	return log
}

func templateOf(name string) *logTemplate {
	templatesMu.Lock()
	defer templatesMu.Unlock()
	b, made := templates[name]
	if !made {
		b = newTemplate(name)
		templates[name] = b
	}
	return b
}

// newTemplate finds the holes by what changes in the log when an item does.
func newTemplate(name string) *logTemplate {
	names := holes[name]
	if names == nil {
		names = []string{"key"}
	}
	b := &logTemplate{log: encode(name, "")}
	for _, hole := range names {
		other := encode(name, hole)
		b.data, b.topics = append(b.data, differing(b.log.Data, other.Data)),
			append(b.topics, differingTopics(b.log.Topics, other.Topics))
	}
	return b
}

// encode writes an event all of whose items are zero, but for one.
func encode(name, one string) chain.Log {
	n := slices.IndexFunc(gmxtest.Events(), func(e gmxtest.Documented) bool { return e.Name == name })
	event := gmxtest.Events()[n]
	given := perp.Fields{}
	for item, kind := range event.Items {
		given[item] = valueOf(kind, item == one)
	}
	return event.Log(EventEmitter, given)
}

// valueOf is zero in a type of Solidity, or a word that is not.
func valueOf(kind string, set bool) any {
	word := perp.BoolWord(set)
	switch kind {
	case "address":
		return word.Address()
	case "uint256":
		return chain.UintFromBytes(word[:])
	case "int256":
		return chain.IntFromWord(word)
	case "bool":
		return set
	default:
		return word
	}
}

// differing lists where words of two data differ.
func differing(a, b []byte) (places []int) {
	for at := 0; at < len(a); at += 32 {
		if !bytes.Equal(a[at:at+32], b[at:at+32]) {
			places = append(places, at)
		}
	}
	return places
}

func differingTopics(a, b []chain.Hash) (places []int) {
	for at := range a {
		if a[at] != b[at] {
			places = append(places, at)
		}
	}
	return places
}
