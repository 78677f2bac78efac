package scanner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/wire"
)

// Param is one [[scanner.param]] table: a word of the DataStore, by name and arguments or by its whole key.
type Param struct {
	Name string     `toml:"name" help:"name of the key, such as SAVED_FUNDING_FACTOR_PER_SECOND; empty if key is given"`
	Args []string   `toml:"args" help:"arguments of the key: addresses, 32-byte words, true or false"`
	Key  chain.Hash `toml:"key" help:"the whole key, in place of name and args"`
	Kind string     `toml:"kind" help:"what is stored there: uint, int, address, bool or bytes32"`
}

// getters are the functions of the DataStore that read one word.
var getters = map[string]string{
	"uint": "getUint(bytes32)", "int": "getInt(bytes32)", "address": "getAddress(bytes32)", "bool": "getBool(bytes32)", "bytes32": "getBytes32(bytes32)",
}

// Validate names every setting that cannot work.
func (p Param) Validate() error {
	var problems []error
	if _, known := getters[p.Kind]; !known {
		problems = append(problems, fmt.Errorf("kind: %q is not one of uint, int, address, bool, bytes32", p.Kind))
	}
	if (p.Name == "") == p.Key.IsZero() {
		problems = append(problems, errors.New("name: give either name (and args) or key"))
	}
	if _, err := p.words(); err != nil {
		problems = append(problems, fmt.Errorf("args: %w", err))
	}
	return errors.Join(problems...)
}

func (p Param) words() ([]chain.Hash, error) {
	words := make([]chain.Hash, len(p.Args))
	for i, text := range p.Args {
		var err error
		if words[i], err = parseWord(text); err != nil {
			return nil, err
		}
	}
	return words, nil
}

func parseWord(text string) (chain.Hash, error) {
	if text == "true" || text == "false" {
		return perp.BoolWord(text == "true"), nil
	}
	const addressLength = 2 + 2*len(chain.Address{})
	if strings.HasPrefix(text, "0x") && len(text) == addressLength {
		address, err := chain.ParseAddress(text)
		return address.Hash(), err
	}
	return chain.ParseHash(text)
}

// key is where the word stands in the DataStore.
func (p Param) key() (chain.Hash, error) {
	if p.Name == "" {
		return p.Key, nil
	}
	words, err := p.words()
	if err != nil {
		return chain.Hash{}, err
	}
	return perp.DataStoreKey(p.Name, words...), nil
}

// caller executes a message on the state after a block.
type caller interface {
	Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error)
}

// dataStore is the exchange's store of parameters.
type dataStore struct {
	at     chain.Address
	caller caller
}

// word reads one word after a block.
func (d dataStore) word(ctx context.Context, kind string, key, block chain.Hash) (word chain.Hash, err error) {
	selector := chain.Keccak256([]byte(getters[kind]))
	out, err := d.caller.Call(ctx, d.at, append(selector[:4:4], key[:]...), block)
	if err != nil {
		return chain.Hash{}, fmt.Errorf("reading %s from the DataStore: %w", key, err)
	}
	if len(out) != len(word) {
		return chain.Hash{}, fmt.Errorf("reading %s from the DataStore: %d bytes came back (is %s a DataStore?)", key, len(out), d.at)
	}
	return chain.Hash(out), nil
}

// params reads the configured words after a block.
func (d dataStore) params(ctx context.Context, params []Param, block chain.BlockRef) ([]wire.Param, error) {
	read := make([]wire.Param, len(params))
	for i, p := range params {
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		value, err := d.word(ctx, p.Kind, key, block.Hash)
		if err != nil {
			return nil, err
		}
		read[i] = wire.Param{Block: block, Key: key, Value: value}
	}
	return read, nil
}

// account reads whose an order or a position is, after a block; zero if there is none.
func (d dataStore) account(ctx context.Context, owned, block chain.Hash) (chain.Address, error) {
	field := perp.BaseKey("ACCOUNT")
	word, err := d.word(ctx, "address", chain.Keccak256(owned[:], field[:]), block)
	return word.Address(), err
}
