package scanner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/retry"
)

// caller executes messages on the state after a block.
type caller interface {
	Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error)
}

// dataStore is the exchange's store of parameters.
type dataStore struct {
	at     chain.Address
	caller caller
	head   func() uint64 // number of the newest block
}

// keptStates is how many blocks below the head a state may be that a node without an archive keeps: geth and its forks
// keep 128.
const keptStates = 100

// oldStateError reports that no node has the state of a block that lies far below the head. Waiting does not bring it
// back.
type oldStateError struct {
	block uint64
	what  string
	err   error
}

func (e *oldStateError) Error() string {
	return fmt.Sprintf("no endpoint has the state of block %d any more, at which %s has to be read (add an archive "+
		"node to chain.urls, which is asked for such "+
		"calls alone; or begin an empty topic at a later scanner.start_block, before the first market): %v",
		e.block, e.what, e.err)
}

func (e *oldStateError) Unwrap() error { return e.err }

// absentError reports that nothing answered in the DataStore's place.
type absentError struct {
	at    chain.Address
	bytes int
}

func (e *absentError) Error() string {
	return fmt.Sprintf("%d bytes came back in place of a word (is venue.data_store = %s the exchange's DataStore?)",
		e.bytes, e.at)
}

// getters are the functions of the DataStore that read one word.
var getters = map[perp.WordKind]string{
	perp.UintWord: "getUint(bytes32)", perp.IntWord: "getInt(bytes32)", perp.AddressWord: "getAddress(bytes32)",
	perp.FlagWord:    "getBool(bytes32)",
	perp.Bytes32Word: "getBytes32(bytes32)",
}

// message is the calldata of a getter.
func message(getter string, args ...chain.Hash) []byte {
	selector := chain.Keccak256([]byte(getter))
	data := selector[:4:4]
	for _, a := range args {
		data = append(data, a[:]...)
	}
	return data
}

func (d dataStore) wordOf(out []byte) (chain.Hash, error) {
	if len(out) != len(chain.Hash{}) {
		return chain.Hash{}, &absentError{d.at, len(out)}
	}
	return chain.Hash(out), nil
}

// read reads one word after a block.
func (d dataStore) read(ctx context.Context, kind perp.WordKind, key chain.Hash, block chain.BlockRef,
	what string) (value chain.Hash, err error) {
	out, err := d.caller.Call(ctx, d.at, message(getters[kind], key), block.Hash)
	if err == nil {
		value, err = d.wordOf(out)
	}
	if err != nil {
		return value, fmt.Errorf("reading %s from the DataStore at block %d: %w", what, block.Number, err)
	}
	return value, nil
}

// word is read for what cannot go on without: that no node has a state so old is an error that ends the scanner.
func (d dataStore) word(ctx context.Context, kind perp.WordKind, key chain.Hash, block chain.BlockRef,
	what string) (chain.Hash, error) {
	value, err := d.read(ctx, kind, key, block, what)
	if evm.NoState(err) && block.Number+keptStates < d.head() {
		return value, retry.Stop(&oldStateError{block.Number, what, errors.Unwrap(err)})
	}
	return value, err
}

// params reads words after the topic's first block. A DataStore that is not there yet is an error that ends the
// scanner.
func (d dataStore) params(ctx context.Context, words []perp.Word, block chain.BlockRef) (read []wire.Param, err error) {
	for _, w := range words {
		value, err := d.word(ctx, w.Kind, w.Key, block, w.Name)
		if absent, is := errors.AsType[*absentError](err); is && absent.bytes == 0 {
			return nil,
				retry.Stop(fmt.Errorf("scanner.start_block: at block %d there is no contract at venue.data_store = "+
					"%s yet, a call of it answers with 0 bytes "+
					"(set start_block to the block in which the exchange's DataStore was created, or one after it and "+
					"before the first market; or "+
					"data_store to the right address)", block.Number, d.at))
		}
		if err != nil {
			return nil, err
		}
		read = append(read, wire.Param{Block: block, Key: w.Key, Value: value, Name: w.Name})
	}
	return read, nil
}

// account reads whose an order or a position is, after a block; zero if there is none.
func (d dataStore) account(ctx context.Context, owned chain.Hash, block chain.BlockRef) (chain.Address, error) {
	field := perp.BaseKey("ACCOUNT")
	word, err := d.word(ctx, perp.AddressWord, chain.Keccak256(owned[:], field[:]), block,
		"the account of "+owned.Hex())
	return word.Address(), err
}

// The fields of a market, each under keccak256(abi.encode(market, keccak256(abi.encode(name)))) (MarketStoreUtils).
var marketFields = []string{"INDEX_TOKEN", "LONG_TOKEN", "SHORT_TOKEN"}

// mostMarkets bounds the list of markets: no exchange has as many, and a broken answer is not to fill the memory.
const mostMarkets = 10_000

// markets lists the exchange's markets after a block.
func (d dataStore) markets(ctx context.Context, block chain.BlockRef) ([]perp.Market, error) {
	addresses, err := d.marketList(ctx, block)
	if err != nil {
		return nil, fmt.Errorf("listing the markets: %w", err)
	}
	var words []perp.Word
	for _, market := range addresses {
		own := market.Hash()
		for _, name := range marketFields {
			field := perp.BaseKey(name)
			words = append(words, perp.Word{Key: chain.Keccak256(own[:], field[:]), Kind: perp.AddressWord,
				Name: name + " of market " + market.Hex()})
		}
	}
	values, err := d.all(ctx, words, block)
	if err != nil {
		return nil, fmt.Errorf("listing the markets: %w", err)
	}
	markets := make([]perp.Market, len(addresses))
	for i, market := range addresses {
		tokens := values[i*len(marketFields):]
		markets[i] = perp.Market{MarketToken: market, IndexToken: tokens[0].Address(), LongToken: tokens[1].Address(),
			ShortToken: tokens[2].Address()}
	}
	return markets, nil
}

// tokens lists the tokens of the exchange's markets after a block, each once.
func (d dataStore) tokens(ctx context.Context, block chain.BlockRef) (tokens []chain.Address, err error) {
	markets, err := d.markets(ctx, block)
	seen := map[chain.Address]bool{{}: true}
	for _, m := range markets {
		for _, token := range m.Tokens() {
			if !seen[token] {
				seen[token], tokens = true, append(tokens, token)
			}
		}
	}
	return tokens, err
}

// marketList reads the set MARKET_LIST (MarketStoreUtils.getMarketKeys).
func (d dataStore) marketList(ctx context.Context, block chain.BlockRef) ([]chain.Address, error) {
	set := perp.BaseKey("MARKET_LIST")
	out, err := d.caller.Call(ctx, d.at, message("getAddressCount(bytes32)", set), block.Hash)
	if err != nil {
		return nil, err
	}
	word, err := d.wordOf(out)
	if err != nil {
		return nil, err
	}
	count, fits := chain.UintFromBytes(word[:]).Uint64()
	if !fits || count > mostMarkets {
		return nil, fmt.Errorf("the DataStore counts %s markets", chain.UintFromBytes(word[:]))
	}
	if count == 0 {
		return nil, nil
	}
	if out, err = d.caller.Call(ctx, d.at, message("getAddressValuesAt(bytes32,uint256,uint256)", set, chain.Hash{},
		word), block.Hash); err != nil {
		return nil, err
	}
	return addressList(out, int(count))
}

// addressList reads the ABI encoding of a list of so many addresses.
func addressList(out []byte, count int) ([]chain.Address, error) {
	const word = 32
	if len(out) != (2+count)*word || binary.BigEndian.Uint64(out[2*word-8:]) != uint64(count) {
		return nil, fmt.Errorf("%d bytes came back for a list of %d addresses", len(out), count)
	}
	list := make([]chain.Address, count)
	for i := range list {
		list[i] = chain.Hash(out[(2+i)*word:][:word]).Address()
	}
	return list, nil
}
