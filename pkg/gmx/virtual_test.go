package gmx

import (
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/perp"
)

// The virtual inventories of the recordings are the same for a fold that is not told when the flag
// USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE changes: managers may set it without an event.
func TestVirtualInventoriesWithoutTheFlag(t *testing.T) {
	flag := perp.DataStoreKey("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE")
	told := 0
	for _, name := range recordings(t) {
		txs := readRecording(t, name)
		d := NewDecoder(txs[0].logs[0].Address)
		whole, untold := perp.NewBook(), perp.NewBook()
		for _, tx := range txs {
			events, err := d.Transaction(tx.logs, tx.timeMs)
			if err != nil {
				t.Logf("%s: %v", filepath.Base(name), err)
				break
			}
			for _, e := range events {
				switch e := e.(type) {
				case perp.VirtualPositionsMoved:
				case perp.ParameterSet:
					if e.Parameter.Key != flag {
						continue
					}
					if told++; untold.Get(e.Parameter.RowKey()) != nil {
						if err := perp.Apply(whole, e); err != nil {
							t.Fatal(err)
						}
						continue
					}
				case perp.MarketValued:
					if !strings.HasPrefix(string(e.Values[0].Measure), "virtualInventoryForPositions") {
						continue
					}
				default:
					continue
				}
				for _, book := range []*perp.Book{whole, untold} {
					if err := perp.Apply(book, e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, row := range whole.Rows(perp.MarketValues) {
			if got := untold.Get(row.RowKey()); got != row {
				t.Errorf("%s: %+v, told of the flag %+v", filepath.Base(name), got, row)
			}
		}
		t.Logf("%s: %d virtual inventories", filepath.Base(name), len(whole.Rows(perp.MarketValues)))
	}
	if told == 0 {
		t.Skip("no recording changes the flag")
	}
}
