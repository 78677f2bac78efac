package scanner

import (
	"errors"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/service/check"
)

// Param is one [[scanner.param]] table: a word of the DataStore by name and arguments, or one for each market or token
// of the exchange. The words that the rules read (perp.Catalogue) are compared with the chain whether they are named
// here or not; those without each are also read at the topic's first block, for what is folded between that and the
// first audit.
type Param struct {
	Name string   `toml:"name" help:"name of the key, such as REQUEST_EXPIRATION_TIME"`
	Args []string `toml:"args" help:"arguments of the key: addresses, 32-byte words, true or false"`
	Each string   `toml:"each" help:"in place of args: market, market_side, market_token or token, for a word of each there is; such words are read by audits alone"`
	Kind string   `toml:"kind" help:"what is stored there: uint, int, address, bool or bytes32"`
}

// getters are the functions of the DataStore that read one word.
var getters = map[perp.WordKind]string{
	perp.UintWord: "getUint(bytes32)", perp.IntWord: "getInt(bytes32)", perp.AddressWord: "getAddress(bytes32)",
	perp.FlagWord:    "getBool(bytes32)",
	perp.Bytes32Word: "getBytes32(bytes32)",
}

// scopes are what there may be a word of each.
var scopes = []perp.WordScope{perp.OfMarket, perp.OfMarketSide, perp.OfMarketToken, perp.OfToken}

// Validate names every setting that cannot work.
func (p Param) Validate() error {
	_, known := getters[perp.WordKind(p.Kind)]
	_, args := p.words()
	return errors.Join(
		check.Refuse(!known, "kind: %q is not one of uint, int, address, bool, bytes32", p.Kind),
		check.Refuse(p.Name == "", "name: it is missing"),
		check.Refuse(p.Each != "" && !slices.Contains(scopes, perp.WordScope(p.Each)),
			"each: %q is not one of market, market_side, market_token, token", p.Each),
		check.Refuse(p.Each != "" && len(p.Args) > 0, "each: stands without args"),
		check.Refuse(args != nil, "args: %w", args),
	)
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

// listed are the words that a table names, for the markets of the exchange.
func (p Param) listed(markets []perp.Market) ([]perp.Word, error) {
	if p.Each != "" {
		return perp.WordName{Name: p.Name, Kind: perp.WordKind(p.Kind), Scope: perp.WordScope(p.Each)}.Words(markets),
			nil
	}
	words, err := p.words()
	name := p.Name
	if len(p.Args) > 0 {
		name += "(" + strings.Join(p.Args, ", ") + ")"
	}
	return []perp.Word{{Key: perp.DataStoreKey(p.Name, words...), Kind: perp.WordKind(p.Kind), Name: name}}, err
}
