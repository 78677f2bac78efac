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
	{"UiFeeFactorUpdated", 1, global, decodeUIFee},
	{"SetOracleProviderForToken", 0, global, decodeOracleProvider},
	{"InitOracleProviderForToken", 0, global, decodeOracleProvider},
	{"SetStaticPriceForToken", 0, global, decodeStaticPrice},
}

// decodeSetUint may set the starting value of a virtual swap inventory, which is a measure too.
func decodeSetUint(r *reader) {
	value := r.uint("value")
	word := value.Bytes32()
	base, args := setParameter(r, word)
	if word[0] < 0x80 {
		setInventory(r, base, args, value.Int())
	}
}

// decodeSetInt may set the starting value of a virtual position inventory, which is a measure too.
func decodeSetInt(r *reader) {
	value := r.int("value")
	base, args := setParameter(r, value.Word())
	setInventory(r, base, args, value)
}

func decodeSetBool(r *reader) { setParameter(r, perp.BoolWord(r.bool("value"))) }

func decodeSetAddress(r *reader) { setParameter(r, r.address("value").Hash()) }

func decodeSetBytes32(r *reader) { setParameter(r, r.hash("value")) }

// setParameter returns the key's parts as well. The arguments are part of the log's data still.
func setParameter(r *reader, value chain.Hash) (base chain.Hash, args []byte) {
	base, args = r.hash("baseKey"), one(r, "data", bytesItem, (*walker).raw)
	emitParameter(r, perp.FullKey(base, args), value)
	return base, args
}

// decodeUIFee is what an interface asks for of the swaps and positions that name it (MarketUtils.setUiFeeFactor): a
// word of its own account that it sets itself.
func decodeUIFee(r *reader) {
	r.checkTopic(2, "account")
	r.emit(perp.ParameterSet{Parameter: perp.Parameter{Key: perp.UIFeeKey(r.address("account")),
		Value: r.uint("uiFeeFactor").Bytes32(), Source: perp.FromAccount, Stamp: r.stamp}})
}

// decodeStaticPrice is the price that a token has from now on for whoever names the static provider (v2.2c,
// Config.setStaticPriceForToken): two words that are written without a SetUint. Which provider is to be named is said
// by the SetOracleProviderForToken before it.
func decodeStaticPrice(r *reader) {
	token := r.address("token")
	for _, side := range []struct {
		item  string
		isMax bool
	}{{"priceMin", false}, {"priceMax", true}} {
		emitParameter(r, perp.StaticPriceKey(token, side.isMax), r.uint(side.item).Bytes32())
	}
}

func emitParameter(r *reader, key, value chain.Hash) {
	r.emit(perp.ParameterSet{Parameter: perp.Parameter{Key: key, Value: value, Source: perp.FromEvent, Stamp: r.stamp}})
}

func decodeOracleProvider(r *reader) {
	r.emit(perp.OracleSourceSet{Source: perp.OracleSource{
		Oracle: r.address("oracle"), Token: r.address("token"), Provider: r.address("provider"), Stamp: r.stamp,
	}})
}

// IsParameter reports whether a log of the EventEmitter sets a word of the exchange's DataStore. Such logs go to every
// partition of the log topic: the folding of other rows reads them (see perp.Table.Replicated).
func IsParameter(l chain.Log) bool {
	if _, ok := emitterTopics(&l); !ok {
		return false
	}
	return slices.Contains(parameterEvents, l.Topics[1])
}

// SetsProvider reports whether a log of the EventEmitter changes which oracle provider a token has, or the price that
// the static one gives of it.
func SetsProvider(l chain.Log) bool {
	_, ok := emitterTopics(&l)
	return ok && slices.Contains(providerEvents, l.Topics[1])
}

var providerEvents = []chain.Hash{
	chain.Keccak256([]byte("SetOracleProviderForToken")), chain.Keccak256([]byte("InitOracleProviderForToken")),
	chain.Keccak256([]byte("SetStaticPriceForToken")),
}

// IsMarketListing reports whether a log of the EventEmitter lists a new market.
func IsMarketListing(l chain.Log) bool {
	_, ok := emitterTopics(&l)
	return ok && l.Topics[1] == marketCreated
}

var marketCreated = chain.Keccak256([]byte("MarketCreated"))

// parameterEvents are the hashes of the names of the events that carry a word.
var parameterEvents = []chain.Hash{
	chain.Keccak256([]byte("SetUint")), chain.Keccak256([]byte("SetInt")), chain.Keccak256([]byte("SetBool")),
	chain.Keccak256([]byte("SetAddress")), chain.Keccak256([]byte("SetBytes32")),
	chain.Keccak256([]byte("UiFeeFactorUpdated")), chain.Keccak256([]byte("SetStaticPriceForToken")),
}
