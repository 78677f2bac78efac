package sender

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/sender/preflight"
)

// LIQ-14: an abrupt move of any price raises what may be paid for liquidations, and how many may be under way; when it
// is over, the ordinary limits hold again.
func TestAbruptMovesRaiseTheLimits(t *testing.T) {
	settings := DefaultConfig().Sender
	q := preflight.NewQuotes(settings.Volatile.Window)
	l := &limits{settings: settings, mode: q.Mode}
	head := uint64(100)
	taken := func() { // the chain takes all that was sent
		for range 8 {
			head++
			l.Observe(txm.Taken{Block: head, Landed: 1, Waiting: 1})
		}
	}
	now := uint64(1_700_000_000_000)
	report := func(dollars uint64, later time.Duration) {
		now += uint64(later.Milliseconds())
		q.Add(price.Report{Min: chain.U64(dollars), Max: chain.U64(dollars), Token: chain.Address{1}, TimeMs: now})
	}
	expect := func(what string, mode liquidation.Mode, gwei uint64, signer, liquidations int) {
		t.Helper()
		fee := l.Fee()
		if got := q.Mode(); got != mode {
			t.Errorf("%s: the markets are %s", what, got)
		}
		if fee.Liquidation.Cap != gwei*txm.Gwei ||
			l.InFlight() != (txm.Limits{Signer: signer, Reserved: settings.Reserved, Liquidations: liquidations}) {
			t.Errorf("%s: %d wei, %+v", what, fee.Liquidation.Cap, l.InFlight())
		}
		if fee.Order != settings.Fee.Order || fee.JobCost != settings.Fee.JobCost ||
			fee.Budget != settings.Fee.Budget {
			t.Errorf("%s: what orders pay, or what the keeper can afford, has changed", what)
		}
	}
	expect("no report yet", liquidation.Normal, 5, 16, 10)
	report(1000, 0)
	report(1050, time.Second)
	expect("5 %", liquidation.Normal, 5, 16, 10)
	report(1051, time.Second)
	expect("more than 5 %", liquidation.Volatile, 10, 16, 10)
	taken()
	expect("more than 5 %, and the chain takes what is sent", liquidation.Volatile, 10, 64, 100)
	l.Observe(txm.Taken{Block: head + 1, Refused: true})
	report(1200, time.Second)
	expect("more than 10 %, and nodes refuse", liquidation.Extreme, 10, 40, 55)
	for range 4 {
		report(1200, settings.Volatile.Window)
		q.Mode()
	}
	taken()
	expect("calm again", liquidation.Normal, 5, 16, 10)

	settings.Volatile = Volatile{Window: time.Minute}
	l.settings = settings
	report(1, time.Second)
	taken()
	expect("volatile, with no more slots", liquidation.Extreme, 10, 16, 10)
}

// LIQ-6: in a crash a signer can pay for its part of a thousand liquidations out of the shipped budget of a day, each
// of
// 2.4 million gas at the highest price that it may offer then.
func TestBudgetPaysForACrash(t *testing.T) {
	l := &limits{settings: DefaultConfig().Sender, mode: func() liquidation.Mode { return liquidation.Extreme }}
	fee := l.Fee()
	one := chain.U64(2_400_000 * fee.Liquidation.Cap)
	burnt := txm.ByLane{job.LiquidationLane: one.Mul(chain.U64(250))}
	if !fee.Budget.Allows(job.LiquidationLane, one, burnt, nil) {
		t.Errorf("%s BNB a day do not pay for a liquidation more after %s", fee.Budget.Day, txm.Wei(burnt.Sum()))
	}
}
