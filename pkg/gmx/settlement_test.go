package gmx

import (
	"path/filepath"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// tokenLog is what a token says of an amount that goes from, or to, an account.
func tokenLog(token chain.Address, topic chain.Hash, amount chain.Uint, parties ...chain.Address) chain.Log {
	l := chain.Log{Address: token, Topics: []chain.Hash{topic}}
	for _, p := range parties {
		l.Topics = append(l.Topics, p.Hash())
	}
	word := amount.Bytes32()
	l.Data = word[:]
	return l
}

// LIQ-11: size, price, fees, what was returned and what was not covered are those of the transaction's own logs; what
// the market paid in coins counts, what it wrapped again does not count twice, and what others moved not at all.
func TestSettlementOfALiquidation(t *testing.T) {
	order := perp.Fields{"orderKey": chain.Hash{1}, "executionPrice": chain.U64(5), "sizeInUsd": chain.Uint{},
		"orderType": chain.U64(7)}
	decrease := gmxtest.Decrease(emitter, order)
	usdc, wrapped := chain.Address{0xcc}, chain.Address{0xbb}
	most := chain.UintFromBytes(slices.Repeat([]byte{0xff}, 32))
	logs := transaction(
		event("InsolventClose", perp.Fields{"orderKey": chain.Hash{1}, "remainingCostUsd": chain.U64(77),
			"step": "pnl"}), decrease[0], decrease[1],
		tokenLog(usdc, transferTopic, chain.U64(40), gmxtest.Market, gmxtest.Account),
		tokenLog(usdc, transferTopic, chain.U64(2), gmxtest.Market, gmxtest.Account),
		tokenLog(usdc, transferTopic, chain.U64(1000), gmxtest.Account, gmxtest.Market),
		tokenLog(usdc, transferTopic, most, gmxtest.Market, gmxtest.Account),
		tokenLog(usdc, transferTopic, chain.U64(1), gmxtest.Market),
		tokenLog(wrapped, withdrawalTopic, chain.U64(9), gmxtest.Market),
		tokenLog(wrapped, depositTopic, chain.U64(9), gmxtest.Market),
		tokenLog(wrapped, transferTopic, chain.U64(9), gmxtest.Market, gmxtest.Account),
		chain.Log{Address: usdc}, chain.Log{Address: emitter},
	)
	events, err := NewDecoder(emitter).Transaction(logs[:3], 0)
	if err != nil {
		t.Fatal(err)
	}
	row := events[2].(perp.PositionSettled).Settlement
	j := job.Job{Kind: job.Liquidation, Key: row.PositionKey, Market: gmxtest.Market}
	got, err := NewDecoder(emitter).Settlement(logs, j)
	if err != nil || got == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.OrderKey != (chain.Hash{1}) || got.ExecutionPrice != chain.U64(5) || !got.SizeLeftUsd.IsZero() ||
		got.SizeDeltaUsd != row.SizeDeltaUsd ||
		got.Fees.Liquidation != row.LiquidationFeeAmount || got.Fees.Total != row.TotalCostAmount ||
		got.Fees.Total.IsZero() {
		t.Errorf("%+v", got)
	}
	if !got.Insolvent || got.BadDebtUsd != chain.U64(77) || got.BadDebtStep != "pnl" {
		t.Errorf("bad debt: %+v", got)
	}
	want := []job.Payment{{Token: wrapped, Amount: chain.U64(9)}, {Token: usdc, Amount: chain.U64(42)}}
	if !slices.Equal(got.Returned, want) {
		t.Errorf("returned %v, want %v", got.Returned, want)
	}
	j.Kind, j.Key = job.Order, chain.Hash{1}
	if got, err = NewDecoder(emitter).Settlement(logs, j); err != nil || got == nil || got.Returned != nil {
		t.Errorf("a decrease by an order: %+v, %v", got, err)
	}
	j.Key = chain.Hash{2}
	if got, err = NewDecoder(emitter).Settlement(logs, j); err != nil || got != nil {
		t.Errorf("another order: %+v, %v", got, err)
	}
}

// LIQ-11: of every decrease in the recordings the settlement says what the decoder says of the whole transaction.
func TestSettlementsOfRecordings(t *testing.T) {
	for _, name := range recordings(t) {
		txs := readRecording(t, name)
		d, settled, insolvent := NewDecoder(txs[0].logs[0].Address), 0, 0
		for _, tx := range txs {
			events, err := d.Transaction(tx.logs, tx.timeMs)
			if err != nil {
				t.Fatal(err)
			}
			debts := map[chain.Hash]perp.BadDebt{}
			for _, e := range events {
				switch e := e.(type) {
				case perp.ClosedInsolvent:
					debts[e.Debt.OrderKey] = e.Debt
				case perp.PositionSettled:
					row := e.Settlement
					s, err := d.Settlement(tx.logs, job.Job{Kind: job.Order, Key: row.OrderKey, Market: row.Market})
					if err != nil || s == nil {
						t.Fatalf("%s: %v, %v", row.OrderKey, s, err)
					}
					debt, is := debts[row.OrderKey]
					if s.SizeDeltaUsd != row.SizeDeltaUsd || s.ExecutionPrice != row.ExecutionPrice ||
						s.Fees.Total != row.TotalCostAmount ||
						s.Insolvent != is || s.BadDebtUsd != debt.RemainingCostUsd || s.PnlUsd != row.BasePnlUsd {
						t.Errorf("%s: %+v, want %+v", row.OrderKey, s, row)
					}
					settled++
					if is {
						insolvent++
					}
				}
			}
		}
		t.Logf("%s: %d settlements, %d of them insolvent", filepath.Base(name), settled, insolvent)
	}
}
