package gmx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var (
	getHasRole       = selector("hasRole(address,bytes32)")
	getBool          = selector("getBool(bytes32)")
	getAddress       = selector("getAddress(bytes32)")
	getBytes32       = selector("getBytes32(bytes32)")
	getAddressCount  = selector("getAddressCount(bytes32)")
	getAddressValues = selector("getAddressValuesAt(bytes32,uint256,uint256)")
	getDecimals      = selector("decimals()")
	getSymbol        = selector("symbol()")
)

// HasRole asks a RoleStore whether an account holds a role, by the role's name, such as ORDER_KEEPER.
func HasRole(ctx context.Context, node Asker, roles, account chain.Address, role string) (bool, error) {
	word, err := askWord(ctx, node, roles, getHasRole, account.Hash(), perp.BaseKey(role))
	if err != nil {
		return false, fmt.Errorf("asking %s whether %s is a %s: %w", roles, account, role, err)
	}
	return word[31] != 0, nil
}

// TakesReportsFrom asks a DataStore whether an oracle provider is enabled.
func TakesReportsFrom(ctx context.Context, node Asker, store, provider chain.Address) (bool, error) {
	key := perp.DataStoreKey("IS_ORACLE_PROVIDER_ENABLED", provider.Hash())
	word, err := askWord(ctx, node, store, getBool, key)
	if err != nil {
		return false, fmt.Errorf("asking %s for the oracle provider %s: %w", store, provider, err)
	}
	return word[31] != 0, nil
}

// PriceFeed asks a DataStore by which Data Stream the exchange knows a token's price, and which provider its reports
// are given to. Either is zero where there is none.
func PriceFeed(ctx context.Context, node Asker, store, oracle, token chain.Address) (stream chain.Hash,
	provider chain.Address, err error) {
	word, err := askWord(ctx, node, store, getBytes32, perp.DataStoreKey("DATA_STREAM_ID", token.Hash()))
	if err == nil {
		stream = (&walker{data: word}).word(0)
		key := perp.DataStoreKey("ORACLE_PROVIDER_FOR_TOKEN", oracle.Hash(), token.Hash())
		word, err = askWord(ctx, node, store, getAddress, key)
	}
	if err != nil {
		return stream, provider, fmt.Errorf("asking %s for the price feed of %s: %w", store, token, err)
	}
	return stream, (&walker{data: word}).address(0), nil
}

// mostMarkets bounds how many markets are listed.
const mostMarkets = 1000

// Markets asks a DataStore how many markets there are.
func Markets(ctx context.Context, node Asker, store chain.Address) (count int, err error) {
	word, err := askWord(ctx, node, store, getAddressCount, perp.BaseKey("MARKET_LIST"))
	if err != nil {
		return 0, fmt.Errorf("asking %s how many markets there are: %w", store, err)
	}
	return countOf(word, mostMarkets), nil
}

// MarketTokens asks a DataStore for the tokens whose prices its markets need, each once, by MarketStoreUtils of the
// contracts.
func MarketTokens(ctx context.Context, node Asker, store chain.Address) (tokens []chain.Address, err error) {
	count, err := Markets(ctx, node, store)
	if err != nil || count == 0 {
		return nil, err
	}
	end := chain.U64(uint64(count)).Bytes32()
	output, answered, err := node.Ask(ctx, store,
		getter(getAddressValues, perp.BaseKey("MARKET_LIST"), chain.Hash{}, end))
	if err == nil && !answered {
		err = errRefused
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for the markets: %w", store, err)
	}
	seen := map[chain.Address]bool{{}: true}
	w := walker{data: output}
	for i := range count {
		market := w.address(64 + 32*i)
		if w.err != nil {
			return nil, fmt.Errorf("the list of markets cannot be read: %w", w.err)
		}
		for _, side := range []string{"INDEX_TOKEN", "LONG_TOKEN", "SHORT_TOKEN"} {
			marketHash, base := market.Hash(), perp.BaseKey(side)
			word, err := askWord(ctx, node, store, getAddress, chain.Keccak256(marketHash[:], base[:]))
			if err != nil {
				return nil, fmt.Errorf("asking %s for a token of market %s: %w", store, market, err)
			}
			token := (&walker{data: word}).address(0)
			if !seen[token] {
				seen[token] = true
				tokens = append(tokens, token)
			}
		}
	}
	return tokens, nil
}

// Decimals asks a token's contract; known is false where there is none, as of a token that only has a price.
func Decimals(ctx context.Context, node Asker, token chain.Address) (decimals int, known bool, err error) {
	word, err := askWord(ctx, node, token, getDecimals)
	if err != nil {
		return 0, false, unlessRefused(err)
	}
	return countOf(word, 255), true, nil
}

// longestSymbol bounds what is believed to be a symbol, in letters.
const longestSymbol = 16

// Symbol asks a token's contract, which answers with a string or, as old ones do, with a word. It is empty where there
// is no contract, or where its answer is nothing that can be shown in a line.
func Symbol(ctx context.Context, node Asker, token chain.Address) (string, error) {
	output, answered, err := node.Ask(ctx, token, getter(getSymbol))
	if err != nil || !answered {
		return "", err
	}
	symbol := string(bytes.TrimRight(output, "\x00"))
	if w := (&walker{data: output}); len(output) > 32 {
		symbol = w.text(w.size(0))
		if w.err != nil {
			return "", nil //nolint:nilerr // It is no symbol: the contract is of another kind.
		}
	}
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }
	if !utf8.ValidString(symbol) || utf8.RuneCountInString(symbol) > longestSymbol ||
		strings.ContainsFunc(symbol, hidden) {
		return "", nil
	}
	return symbol, nil
}

// errRefused is why there is no answer of a contract that has no such function.
var errRefused = errors.New("it has no such function")

// unlessRefused is the error of a question, nil where the contract just has no such function.
func unlessRefused(err error) error {
	if errors.Is(err, errRefused) {
		return nil
	}
	return err
}

// askWord asks a function that returns one word.
func askWord(
	ctx context.Context, node Asker, contract chain.Address, name [4]byte, args ...chain.Hash,
) ([]byte, error) {
	output, answered, err := node.Ask(ctx, contract, getter(name, args...))
	if err == nil && (!answered || len(output) != 32) {
		err = errRefused
	}
	return output, err
}
