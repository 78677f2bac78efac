package recordings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// missingWord is a word of the exchange's store that no event carries: what was written under a key in a block. Fn is
// the store's function; without it the value's own form shows its type.
type missingWord struct {
	Block uint64          `json:"block"`
	Fn    string          `json:"fn"`
	Key   chain.Hash      `json:"key"`
	Value json.RawMessage `json:"value"` // hexadecimal address or word, decimal number as text or number, or boolean

	parsed chain.Hash
}

// words are in the order of their blocks; each is taken in once.
type words []missingWord

// readWords reads a file of words: a JSON array.
func readWords(name string) (words, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var w words
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("%s is no JSON array of words: %w", name, err)
	}
	for n := range w {
		if w[n].parsed, err = w[n].parse(); err != nil {
			return nil, fmt.Errorf("%s: word %d: %w", name, n+1, err)
		}
	}
	slices.SortStableFunc(w, func(a, b missingWord) int { return cmp.Compare(a.Block, b.Block) })
	return w, nil
}

func (w missingWord) parse() (chain.Hash, error) {
	if w.Key.IsZero() {
		return chain.Hash{}, errors.New("it has no key")
	}
	value := strings.Trim(string(w.Value), `"`)
	switch {
	case value == "true" || value == "false":
		return perp.BoolWord(value == "true"), nil
	case w.Fn == "setAddress" || w.Fn == "" && len(value) == 2+2*len(chain.Address{}):
		address, err := chain.ParseAddress(value)
		return address.Hash(), err
	case strings.HasPrefix(value, "0x"):
		return chain.ParseHash(value)
	}
	number, err := chain.ParseInt(value)
	if err == nil {
		return number.Word(), nil
	}
	large, err := chain.ParseUint(value)
	return large.Bytes32(), err
}

// settle takes in the words of blocks up to one, as the log topic's PARAM records would bring them: after all logs of
// their block.
func (f *fold) settle(block uint64) error {
	for len(f.words) > 0 && f.words[0].Block <= block {
		w := f.words[0]
		event := perp.ParameterSet{Parameter: perp.Parameter{Key: w.Key, Value: w.parsed, Source: perp.FromCall,
			Stamp: perp.Stamp{Block: w.Block}}}
		if err := perp.Apply(f.book, event); err != nil {
			return fmt.Errorf("word %s of block %d: %w", w.Key, w.Block, err)
		}
		f.words = f.words[1:]
	}
	return nil
}
