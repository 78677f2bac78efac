package gmx

import (
	"path/filepath"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// TIER-14: the price an order is filled at, its impact included, is the contracts' own to the last unit, for every
// increase and decrease in the recordings, from the logs before it.
func TestExecutionPricesOfRecordings(t *testing.T) {
	for _, name := range recordings(t) {
		if filepath.Base(name) == "story.jsonl.gz" { // invented, not executed
			continue
		}
		txs := readRecording(t, name)
		d, book, seen := NewDecoder(txs[0].logs[0].Address), perp.NewBook(), map[bool]int{}
		for _, tx := range txs {
			events, err := d.Transaction(tx.logs, tx.timeMs)
			if err != nil {
				t.Fatal(err)
			}
			prices := map[chain.Address]perp.Price{}
			for _, l := range tx.logs {
				if token, price, _, is := OracleReport(l); is {
					prices[token] = price
				}
			}
			view := perp.NewView(perp.Circumstances{Rows: book, Prices: prices, Time: tx.timeMs / 1000})
			for _, l := range tx.logs {
				kind := eventKinds[l.Topics[1]].name
				if kind != "PositionIncrease" && kind != "PositionDecrease" {
					continue
				}
				items, err := eventItems(l.Data)
				if err != nil {
					t.Fatal(err)
				}
				n, _ := items["orderType"].(chain.Uint).Uint64()
				o := perp.Order{
					Market: items["market"].(chain.Address), OrderType: perp.OrderType(n),
					SizeDeltaUsd: items["sizeDeltaUsd"].(chain.Uint),
					IsLong:       items["isLong"].(bool),
				}
				terms, err := view.Terms(o.Market)
				if err != nil {
					t.Fatal(err)
				}
				key := perp.RowKey{Table: perp.Positions, Key: items["positionKey"].(chain.Hash)}
				p, _ := book.Get(key).(perp.Position)
				got, err := terms.ExecutionPrice(o, p)
				if want := items["executionPrice"].(chain.Uint); err != nil || got != want {
					t.Errorf("%s, block %d, %s, long %t: %s, want %s (%v)", filepath.Base(name), l.Block, o.OrderType,
						o.IsLong, got, want, err)
				}
				seen[o.OrderType.IsIncrease()]++
			}
			for _, handler := range Speakers(tx.logs) {
				book.Put(perp.HandlerVersion(handler, perp.V22b))
			}
			for _, e := range events {
				perp.Apply(book, e)
			}
		}
		t.Logf("%s: %d increases, %d decreases", filepath.Base(name), seen[true], seen[false])
		if seen[true] == 0 || seen[false] == 0 {
			t.Errorf("%s: %v", filepath.Base(name), seen)
		}
	}
}
