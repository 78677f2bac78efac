package recordings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// swapCase asks what a swap would give as the venue stood after a block. Prices are given raw, by token, [min, max] in
// USD with 30 decimals per smallest unit, or in USD per whole token by a symbol or address that --tokens or the file's
// own list of tokens explains. Other fields, such as what the chain said, are not read.
type swapCase struct {
	Block           *uint64                         `json:"block"` // the last one that counts; without it all do
	Path            []chain.Address                 `json:"path"`
	TokenIn         chain.Address                   `json:"tokenIn"`
	AmountIn        chain.Uint                      `json:"amountIn"`
	MinOutputAmount chain.Uint                      `json:"minOutputAmount"`
	UIFeeReceiver   chain.Address                   `json:"uiFeeReceiver"`
	RawPrices       map[chain.Address][2]chain.Uint `json:"rawPrices"`
	Prices          map[string]casePrice            `json:"prices"`
}

// swapAnswer is what is printed of a case: what comes out, or the name of the error that the venue would refuse with.
type swapAnswer struct {
	AmountOut *chain.Uint `json:"amountOut,omitempty"`
	Hops      []hopAnswer `json:"hops,omitempty"`
	Revert    string      `json:"revert,omitempty"`
}

type hopAnswer struct {
	AmountOut         chain.Uint `json:"amountOut"`
	PriceImpactAmount chain.Int  `json:"priceImpactAmount"`
}

// swapCases are the questions of a file, each answered when the fold has come as far as it asks for.
type swapCases struct {
	tokens  tokenNames
	asked   []swapCase
	answers []swapAnswer
	left    []int // not answered yet, by block
}

// readSwapCases reads a file of cases: a JSON array, or an object with the array "cases" and, where prices are by
// symbol, "tokens".
func readSwapCases(name string, tokens tokenNames) (*swapCases, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c := &swapCases{tokens: tokens}
	var file struct {
		Cases  []swapCase `json:"cases"`
		Tokens map[string]struct {
			Address  chain.Address `json:"address"`
			Decimals int           `json:"decimals"`
		} `json:"tokens"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &file.Cases)
	} else {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s holds no swap cases: %w", name, err)
	}
	for symbol, t := range file.Tokens {
		if tokens[symbol].address.IsZero() {
			tokens[symbol] = tokenName{address: t.Address, decimals: t.Decimals}
		}
	}
	c.asked, c.answers = file.Cases, make([]swapAnswer, len(file.Cases))
	for n := range c.asked {
		c.left = append(c.left, n)
	}
	slices.SortStableFunc(c.left, func(a, b int) int { return cmp.Compare(c.asked[a].asOf(), c.asked[b].asOf()) })
	return c, nil
}

func (c *swapCase) asOf() uint64 {
	if c.Block == nil {
		return math.MaxUint64
	}
	return *c.Block
}

// before answers the cases that ask for the state before a block.
func (c *swapCases) before(block uint64, state *fold) error {
	for len(c.left) > 0 && c.asked[c.left[0]].asOf() < block {
		if err := c.answer(c.left[0], state); err != nil {
			return err
		}
		c.left = c.left[1:]
	}
	return nil
}

// rest answers what is left when the recording has ended, and writes all answers in the order of the cases.
func (c *swapCases) rest(state *fold) ([]byte, error) {
	for _, n := range c.left {
		if err := c.answer(n, state); err != nil {
			return nil, err
		}
	}
	return encoded(c.answers)
}

func (c *swapCases) answer(n int, state *fold) error {
	asked := &c.asked[n]
	err := state.settle(asked.asOf())
	if err == nil {
		c.answers[n], err = asked.swap(state.book, c.tokens)
	}
	if err != nil {
		return fmt.Errorf("swap case %d: as of block %d: %w", n+1, state.seen.LastBlock, err)
	}
	return nil
}

// maxPathLength is the longest path of which the exchange takes an order (MarketUtils.validateSwapPath). It is not
// asked again when the order is executed.
var maxPathLength = perp.RowKey{Table: perp.Parameters, Key: perp.DataStoreKey("MAX_SWAP_PATH_LENGTH")}

// swap is what a request that is made now, and executed at once, comes to.
func (c *swapCase) swap(rows perp.Rows, tokens tokenNames) (swapAnswer, error) {
	prices, err := c.quotes(tokens)
	if err != nil {
		return swapAnswer{}, err
	}
	s := perp.Swap{Path: c.Path, TokenIn: c.TokenIn, AmountIn: c.AmountIn, MinOutput: c.MinOutputAmount,
		UIFeeReceiver: c.UIFeeReceiver}
	most, known := rows.Get(maxPathLength).(perp.Parameter)
	if known && most.Uint().Less(chain.U64(uint64(len(s.Path)))) {
		return swapAnswer{Revert: "MaxSwapPathLengthExceeded"}, nil
	}
	done, err := s.Execute(rows, prices)
	if refusal, is := errors.AsType[perp.Refusal](err); is {
		return swapAnswer{Revert: refusal.Name}, nil
	}
	if err == nil && s.AmountIn.IsZero() {
		return swapAnswer{Revert: "EmptyOrder"}, nil
	}
	answer := swapAnswer{AmountOut: &done.AmountOut}
	for _, h := range done.Hops {
		answer.Hops = append(answer.Hops, hopAnswer{h.AmountOut, h.PriceImpactAmount})
	}
	return answer, err
}

// quotes are the prices a case is asked at.
func (c *swapCase) quotes(tokens tokenNames) (map[chain.Address]perp.Price, error) {
	prices := map[chain.Address]perp.Price{}
	for _, q := range tokens.quotes(c.Prices) {
		if q.address.IsZero() || q.decimals < 0 {
			if len(c.RawPrices) > 0 {
				continue
			}
			return nil, fmt.Errorf("cannot tell which token %s is; say so with --tokens SYMBOL=ADDRESS:DECIMALS,…",
				q.name)
		}
		minimum, err := q.price.Min.perUnit(q.decimals)
		maximum, errMax := q.price.Max.perUnit(q.decimals)
		if err := errors.Join(err, errMax); err != nil {
			return nil, fmt.Errorf("price of %s: %w", q.name, err)
		}
		prices[q.address] = perp.Price{Min: minimum, Max: maximum}
	}
	for token, raw := range c.RawPrices {
		prices[token] = perp.Price{Min: raw[0], Max: raw[1]}
	}
	return prices, nil
}
