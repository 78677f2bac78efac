package pnl

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

func entries(t *rapid.T) []Entry {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) Entry {
		return Entry{
			Signer:       chain.Address{rapid.Byte().Draw(t, "signer") % 3},
			Kind:         rapid.SampledFrom([]job.Kind{"", job.Order, job.Liquidation}).Draw(t, "kind"),
			Market:       chain.Address{rapid.Byte().Draw(t, "market") % 3},
			Purpose:      rapid.SampledFrom([]Purpose{Executed, Lost, Freed}).Draw(t, "purpose"),
			Transactions: rapid.IntRange(0, 9).Draw(t, "transactions"),
			Fees:         chain.U64(rapid.Uint64().Draw(t, "fees")),
			Gas:          chain.U64(rapid.Uint64().Draw(t, "gas")),
		}
	})).Draw(t, "entries")
}

// Along every dimension the lines add up to the total, and gas is what was spent on success, loss and freeing.
func TestLinesAddUpToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Statement{Entries: entries(t)}
		total := s.Total()
		for _, d := range Dimensions() {
			var sum Line
			names := map[string]bool{}
			for _, l := range s.By(d) {
				if names[l.Name] {
					t.Fatalf("two lines are called %s", l.Name)
				}
				names[l.Name] = true
				sum.Transactions, sum.Lost, sum.Freed = sum.Transactions+l.Transactions, sum.Lost+l.Lost,
					sum.Freed+l.Freed
				sum.Fees, sum.Gas = sum.Fees.Add(l.Fees), sum.Gas.Add(l.Gas)
				sum.LostGas, sum.FreedGas = sum.LostGas.Add(l.LostGas), sum.FreedGas.Add(l.FreedGas)
				if signer, err := chain.ParseAddress(l.Name); d == BySigner && (err != nil || l != s.Of(signer)) {
					t.Fatalf("%+v of one signer, %+v asked for alone, %v", l, s.Of(signer), err)
				}
			}
			if sum.Name = total.Name; sum != total {
				t.Fatalf("by %s %+v, in all %+v", d, sum, total)
			}
		}
	})
}

// What is moved is what fees and gas leave unexplained of a balance.
func TestMoved(t *testing.T) {
	own := Line{Fees: chain.U64(30), Gas: chain.U64(100)}
	for _, c := range []struct {
		before, after uint64
		want          int64
	}{{500, 430, 0}, {500, 930, 500}, {500, 30, -400}} {
		if got := (Account{}).Moved(chain.U64(c.before), chain.U64(c.after), own); got != chain.I64(c.want) {
			t.Errorf("from %d to %d: %s moved, want %d", c.before, c.after, got, c.want)
		}
	}
}

func TestParseDimension(t *testing.T) {
	for _, d := range Dimensions() {
		if got, err := ParseDimension(string(d)); err != nil || got != d {
			t.Error(d, got, err)
		}
	}
	if _, err := ParseDimension("day"); err == nil {
		t.Error("a dimension that is none was taken")
	}
}
