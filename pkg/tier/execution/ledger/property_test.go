package ledger

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// happens draws something a keeper, a trader or a stranger may do about one of few orders and positions.
func happens(t *rapid.T) Transaction {
	by := rapid.SampledFrom([]chain.Address{master, backup, third, stranger}).Draw(t, "by")
	what := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "what")
	tx := Transaction{}
	switch rapid.IntRange(0, 7).Draw(t, "happening") {
	case 0:
		tx = asked(what)
	case 1:
		tx = executes(by, what, 0, rapid.SampledFrom([]perp.Status{perp.Executed, perp.Cancelled, perp.Frozen}).
			Draw(t, "how"))
	case 2:
		tx = loses(by, rapid.SampledFrom([]job.Kind{job.Order, job.Liquidation}).Draw(t, "kind"), what, 0)
		tx.OK = rapid.Bool().Draw(t, "succeeded and did nothing")
	case 3:
		tx = liquidates(by, what, 0, uint64(rapid.IntRange(0, 2000).Draw(t, "oracle")))
		tx.Events = append(tx.Events, perp.OrderEnded{Key: key("b"), Status: perp.Cancelled, Reason: "AUTO_CANCEL"})
	case 4:
		tx = withdraws(trader, what)
	case 5: // through a contract: what it was called for cannot be read
		tx = executes(by, what, 0, perp.Executed)
		tx.Call = job.Need{}
	case 6:
		tx = opens(by, what, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "position"))
	default:
		tx = Transaction{Tx: chain.Tx{From: by}}
	}
	tx.GasUsed, tx.GasPrice = uint64(rapid.IntRange(1, 1000).Draw(t, "gas")),
		uint64(rapid.IntRange(0, 5).Draw(t, "price"))
	return tx
}

// TestNothingIsLostOrPaidTwice: what keepers spent is in the sums to the wei, each transaction in one place, and the
// rows add up to the sums. The dumb twin knows of each transaction whether somebody worked in it, and of each job
// whether it is over.
func TestNothingIsLostOrPaidTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Config{Roster: roster, Patience: uint64(rapid.IntRange(1, 20).Draw(t, "patience")) * 1000})
		var (
			rows       []Row
			spent      Cost
			wins, lost int
			tip        chain.BlockRef
		)
		for range rapid.IntRange(1, 30).Draw(t, "blocks") {
			tip = chain.BlockRef{Number: tip.Number + 1, Parent: tip.Hash, Hash: chain.Keccak256(tip.Hash[:]),
				TimeMs: tip.TimeMs + 1000}
			txs := rapid.SliceOfN(rapid.Custom(happens), 0, 4).Draw(t, "transactions")
			for _, tx := range txs {
				endings, ends, own := execution.Endings(tx.Events), false, false
				for _, e := range endings {
					work := e.Work() && (e.Result != execution.Cancelled || tx.called() ||
						roster[tx.From] != 0)
					if work {
						wins++
					}
					ends = ends || work
					own = own || tx.called() && e.Kind == tx.Call.Kind && e.Key == tx.Call.Key
				}
				if tx.called() && !own {
					lost++
				}
				if ends || tx.called() || len(endings) == 0 && roster[tx.From] != 0 {
					spent = spent.with(Tx{Gas: tx.GasUsed, GasPrice: tx.GasPrice})
				}
			}
			closed, err := l.Block(Block{tip, txs})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, closed...)
		}
		rest, totals := l.Close()
		rows = append(rows, rest...)
		all := totals.All()
		if got := all.Won.plus(all.Late).plus(all.Early).plus(totals.Other); got.Gas != spent.Gas ||
			got.Wei != spent.Wei {
			t.Fatalf("%d gas and %s wei are booked, %d and %s were spent", got.Gas, got.Wei, spent.Gas, spent.Wei)
		}
		if all.Won.Count != wins || all.Late.Count+all.Early.Count != lost {
			t.Fatalf("%d wins and %d losses are booked, there were %d and %d", all.Won.Count,
				all.Late.Count+all.Early.Count, wins, lost)
		}
		var again Sum
		again.ByTier, again.ages = map[int]int{}, map[Clock][]uint32{}
		for _, r := range rows {
			again.add(r, r.Winner != nil)
		}
		if len(rows) != all.Jobs || again.Won != all.Won || again.Late != all.Late || again.Early != all.Early ||
			again.Waiting != all.Waiting ||
			again.Withdrawn != all.Withdrawn || again.Attempted != all.Attempted {
			t.Fatalf("the rows come to %+v, the sums say %+v", again, *all)
		}
	})
}

// TestSavingIsTheFormula: with no loser lost but those r is measured by, sharing saves (n-1)r/(1+(n-1)r) at most
// (TIER-18).
func TestSavingIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, r := rapid.IntRange(1, 9).Draw(t, "keepers"), Ratio(rapid.IntRange(0, 2000).Draw(t, "r"))
		s := &Sum{Kind: job.Order, Won: Cost{Count: 7, Gas: uint64(rapid.IntRange(1_000_000, 1<<40).Draw(t, "gas"))}}
		got, known := Rates{job.Order: r}.Saving(n, s)
		others := int64(n-1) * int64(r)
		want := 1000 * others / (1000 + others)
		if !known || int64(got.AtMost) < want-1 || int64(got.AtMost) > want+1 || got.Saved != got.AtMost {
			t.Fatalf("saves %s at most, by the formula %d thousandths", got.AtMost, want)
		}
	})
}
