package gmx

import (
	"slices"

	"perpkeeper/pkg/chain"
)

// scope is whose event it is, which decides the partition that applies it.
type scope uint8

const (
	global     scope = iota // of the whole exchange: partition 0
	ofMarket                // topic 1 is the market
	ofAccount               // topic 1 is the account
	ofOwner                 // topic 1 is a key, topic 2 the account that owns it
	ofKey                   // the item "key" names an order or a position; no item names its account
	ofOrderKey              // the same with the item "orderKey"
)

// eventKind is one event of the contracts.
type eventKind struct {
	name string
	// topics counts those after the name's hash: 0 for EventLog, 1 for EventLog1, 2 for EventLog2.
	topics int
	scope  scope
	// decode is nil for events that carry no state we keep.
	decode func(*reader)
}

// eventKinds holds every known event by the hash of its name.
var eventKinds = indexEvents()

func indexEvents() map[chain.Hash]*eventKind {
	index := map[chain.Hash]*eventKind{}
	for _, k := range slices.Concat(positionEvents, orderEvents, requestEvents, marketEvents, configEvents, feeEvents,
		ignoredEvents()) {
		hash := chain.Keccak256([]byte(k.name))
		if _, twice := index[hash]; twice {
			panic("event " + k.name + " is listed twice")
		}
		index[hash] = &k
	}
	return index
}

// Topics is the filter for a node: the three events of the EventEmitter, whatever their name. A filter by name would
// hide events that a newer version of the contracts brings.
func Topics() [][]chain.Hash {
	return [][]chain.Hash{{eventLogTopics[0], eventLogTopics[1], eventLogTopics[2]}}
}

const eventDataType = "(((string,address)[],(string,address[])[]),((string,uint256)[],(string,uint256[])[])," +
	"((string,int256)[],(string,int256[])[])," +
	"((string,bool)[],(string,bool[])[]),((string,bytes32)[],(string,bytes32[])[]),((string,bytes)[],(string,bytes[])[])," +
	"((string,string)[],(string,string[])[]))"

// eventLogTopics are topic 0 of EventLog, EventLog1 and EventLog2: the index is the number of further indexed
// arguments.
var eventLogTopics = [3]chain.Hash{
	chain.Keccak256([]byte("EventLog(address,string,string," + eventDataType + ")")),
	chain.Keccak256([]byte("EventLog1(address,string,string,bytes32," + eventDataType + ")")),
	chain.Keccak256([]byte("EventLog2(address,string,string,bytes32,bytes32," + eventDataType + ")")),
}
