package recordings

import (
	"encoding/json"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// swapCheck compares the swap rule with every swap that the exchange has executed by a recording, each on the state
// right before it: what it gave, took and charged, and what it left of the pools.
type swapCheck struct {
	Swaps  int          `json:"swaps"`
	Differ []swapDiffer `json:"differ"`
}

// swapDiffer is a swap of which rule and chain say different things.
type swapDiffer struct {
	Block  uint64        `json:"block"`
	Log    uint32        `json:"log"`
	Market chain.Address `json:"market"`
	What   string        `json:"what"`
}

func (c *swapCheck) result() ([]byte, error) {
	text, err := json.MarshalIndent(c, "", " ")
	return append(text, '\n'), err
}

// checking follows one transaction, event by event.
type checking struct {
	check  *swapCheck
	rows   *perp.Book
	swaps  []gmx.ExecutedSwap
	prices map[chain.Address]perp.Price
	after  map[perp.RowKey]perp.MarketValue // what the rule says the present swap leaves
}

func (c *swapCheck) transaction(book *perp.Book, logs []chain.Log) (*checking, error) {
	swaps, err := gmx.ExecutedSwaps(logs)
	if err != nil {
		return nil, err
	}
	t := &checking{check: c, rows: book, swaps: swaps, prices: map[chain.Address]perp.Price{}}
	for _, l := range logs {
		if token, price, is := gmx.OraclePrice(l); is {
			t.prices[token] = price
		}
	}
	return t, nil
}

// before is called with each event before it is applied.
func (t *checking) before(e perp.Event) {
	moved, is := e.(perp.MarketValued)
	if !is || len(t.swaps) == 0 || moved.Values[0].Stamp.Log < t.swaps[0].From {
		return
	}
	if t.swaps[0].At < moved.Values[0].Stamp.Log {
		t.swaps = t.swaps[1:]
		t.before(e)
		return
	}
	if moved.Values[0].Stamp.Log == t.swaps[0].From {
		t.swap(t.swaps[0], moved.Values[0].Stamp.Block)
	}
	for _, v := range moved.Values {
		if expected := t.after[v.RowKey()]; expected.Value != v.Value {
			t.differf(v.Stamp.Block, "%s of token %s: the rule leaves %s, the chain %s", v.Measure, v.Token,
				expected.Value, v.Value)
		}
	}
}

// swap works out a swap by the rule, on the state before it.
func (t *checking) swap(s gmx.ExecutedSwap, block uint64) {
	t.check.Swaps++
	t.after = map[perp.RowKey]perp.MarketValue{}
	if expected := t.prices[s.Hop.TokenIn].Min; expected != s.TokenInPrice {
		t.differf(block, "price of token in %s: the oracle took %s, the swap says %s", s.Hop.TokenIn, expected,
			s.TokenInPrice)
	}
	if expected := t.prices[s.Hop.TokenOut].Max; expected != s.TokenOutPrice {
		t.differf(block, "price of token out %s: the oracle took %s, the swap says %s", s.Hop.TokenOut, expected,
			s.TokenOutPrice)
	}
	rule := perp.Swap{
		Path: []chain.Address{s.Hop.Market}, TokenIn: s.Hop.TokenIn, AmountIn: s.Hop.AmountIn,
		UIFeeReceiver: s.UIFeeReceiver, Atomic: s.Atomic,
	}
	done, err := rule.Execute(t.rows, t.prices)
	if err != nil {
		t.differf(block, "the rule refuses: %v", err)
		return
	}
	hop := done.Hops[0]
	for _, v := range hop.After {
		t.after[v.RowKey()] = v
	}
	hop.After = nil
	if expected, executed := fmt.Sprintf("%+v", hop), fmt.Sprintf("%+v", s.Hop); expected != executed {
		t.differf(block, "the rule says %s, the chain %s", expected, executed)
	}
}

func (t *checking) differf(block uint64, format string, args ...any) {
	s := t.swaps[0]
	t.check.Differ = append(t.check.Differ, swapDiffer{Block: block, Log: s.At, Market: s.Hop.Market,
		What: fmt.Sprintf(format, args...)})
}
