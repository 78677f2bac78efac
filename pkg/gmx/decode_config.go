package gmx

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var configEvents = []eventKind{
	{"SetUint", 1, global, decodeSetUint},
	{"SetInt", 1, global, decodeSetInt},
	{"SetBool", 1, global, decodeSetBool},
	{"SetAddress", 1, global, decodeSetAddress},
	{"SetBytes32", 1, global, decodeSetBytes32},
	{"SetOracleProviderForToken", 0, global, decodeOracleProvider},
	{"InitOracleProviderForToken", 0, global, decodeOracleProvider},
}

// decodeSetUint may set the starting value of a virtual swap inventory, which is a measure too.
func decodeSetUint(r *reader) []perp.Event {
	value := r.uint("value")
	events := parameterSet(r, value.Bytes32())
	if value.Big().BitLen() < 256 {
		events = append(events, startingInventory(r.hash("baseKey"), r.bytes("data"), value.Int(), r.stamp)...)
	}
	return events
}

// decodeSetInt may set the starting value of a virtual position inventory, which is a measure too.
func decodeSetInt(r *reader) []perp.Event {
	value := r.int("value")
	return append(parameterSet(r, value.Word()), startingInventory(r.hash("baseKey"), r.bytes("data"), value, r.stamp)...)
}

func decodeSetBool(r *reader) []perp.Event { return parameterSet(r, perp.BoolWord(r.bool("value"))) }

func decodeSetAddress(r *reader) []perp.Event { return parameterSet(r, r.address("value").Hash()) }

func decodeSetBytes32(r *reader) []perp.Event { return parameterSet(r, r.hash("value")) }

func parameterSet(r *reader, value chain.Hash) []perp.Event {
	return []perp.Event{perp.ParameterSet{Parameter: perp.Parameter{
		Key: perp.FullKey(r.hash("baseKey"), r.bytes("data")), Value: value, Source: perp.FromEvent, Stamp: r.stamp,
	}}}
}

func decodeOracleProvider(r *reader) []perp.Event {
	return []perp.Event{perp.OracleSourceSet{Source: perp.OracleSource{
		Oracle: r.address("oracle"), Token: r.address("token"), Provider: r.address("provider"), Stamp: r.stamp,
	}}}
}

// IsParameter tells whether a log of the EventEmitter sets a word of the exchange's DataStore. Such logs go to every partition of the log topic: the
// folding of other rows reads them (see perp.Table.Replicated).
func IsParameter(l chain.Log) bool {
	if _, ok := emitterTopics(l); !ok {
		return false
	}
	return slices.Contains(parameterEvents, l.Topics[1])
}

// parameterEvents are the hashes of the names of the events of Config that carry a word.
var parameterEvents = []chain.Hash{
	chain.Keccak256([]byte("SetUint")), chain.Keccak256([]byte("SetInt")), chain.Keccak256([]byte("SetBool")),
	chain.Keccak256([]byte("SetAddress")), chain.Keccak256([]byte("SetBytes32")),
}
