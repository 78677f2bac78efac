package ledger

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// book notes one transaction. It returns the accounts of jobs that it found done: those it did again, and those of
// positions it opened again.
func (l *Ledger) book(at chain.BlockRef, tx Transaction) (rows []Row) {
	endings := execution.Endings(tx.Events)
	payer := slices.IndexFunc(endings, func(e execution.Execution) bool {
		return e.Need() == tx.Call || !tx.called() && e.Work()
	})
	over := map[job.Need]bool{}
	for i, e := range endings {
		n := e.Need()
		over[n] = true
		rows = append(rows, l.end(n, at, tx, e, i == payer)...)
	}
	l.openRequests(at, tx, over)
	rows = append(rows, l.reopen(tx)...)
	switch {
	case tx.called() && !over[tx.Call]:
		l.lose(tx.Call, at, tx)
	case !tx.called() && payer < 0 && l.cfg.Roster[tx.From] != 0 && at.Number >= l.cfg.From:
		l.totals.Other = l.totals.Other.with(l.booked(at, tx))
	}
	return rows
}

// end notes that a job is over.
func (l *Ledger) end(n job.Need, at chain.BlockRef, tx Transaction, e execution.Execution, pays bool) (rows []Row) {
	a := l.open[n]
	byOwner := e.Result == execution.Cancelled && !tx.called() && l.cfg.Roster[tx.From] == 0
	switch {
	case byOwner || !e.Work():
		if a != nil && a.State == Waiting {
			a.State, a.Result, a.Reason = Withdrawn, e.Result, e.Reason
			a.touch(at)
		}
		return nil
	case a != nil && a.State != Waiting:
		rows = l.close(a)
		a = nil
	}
	if a == nil {
		a = l.account(n, at)
	}
	won := l.booked(at, tx)
	if !pays {
		won.Gas = 0
	}
	a.State, a.Result, a.Reason, a.Winner = Done, e.Result, e.Reason, &won
	switch {
	case a.BornMs != 0:
		a.AgeMs, a.AgeBy = at.TimeMs-min(at.TimeMs, a.BornMs), ByRequest
	case tx.OracleMs != 0:
		a.AgeMs, a.AgeBy = at.TimeMs-min(at.TimeMs, tx.OracleMs), ByReports
	}
	a.touch(at)
	return rows
}

// openRequests opens the accounts of requests that can be executed from now on. The orders of liquidations, and the
// requests within others, are over in the transaction that makes them.
func (l *Ledger) openRequests(at chain.BlockRef, tx Transaction, over map[job.Need]bool) {
	ended := map[chain.Hash]bool{} // orders and requests
	for _, e := range tx.Events {
		switch end := e.(type) {
		case perp.OrderEnded:
			ended[end.Key] = true
		case perp.RequestEnded:
			ended[end.Key] = true
		}
	}
	for _, e := range tx.Events {
		var n job.Need
		switch e := e.(type) {
		case perp.OrderCreated:
			if !e.Order.OrderType.IsMarket() || ended[e.Order.Key] {
				continue
			}
			n = job.Need{Kind: job.Order, Key: e.Order.Key}
		case perp.RequestCreated:
			if ended[e.Request.Key] {
				continue
			}
			n = job.Need{Kind: job.Kind(e.Request.Kind), Key: e.Request.Key}
		default:
			continue
		}
		if !over[n] && l.open[n] == nil {
			a := l.account(n, at)
			a.BornMs = at.TimeMs
		}
	}
}

// reopen closes the accounts of positions that were liquidated and live again: who comes from now on comes for the new
// life.
func (l *Ledger) reopen(tx Transaction) (rows []Row) {
	for _, e := range tx.Events {
		increase, is := e.(perp.PositionIncreased)
		if !is {
			continue
		}
		n := job.Need{Kind: job.Liquidation, Key: increase.Position.PositionKey}
		if a := l.open[n]; a != nil && a.State == Done {
			rows = append(rows, l.close(a)...)
			delete(l.open, n)
		}
	}
	return rows
}

// lose notes a transaction that was called for a job and did not end it.
func (l *Ledger) lose(n job.Need, at chain.BlockRef, tx Transaction) {
	if at.Number < l.cfg.From {
		return
	}
	a := l.open[n]
	if a == nil {
		a = l.account(n, at)
	}
	a.Losers = append(a.Losers, Loser{Tx: l.booked(at, tx), Late: a.State != Waiting, Reverted: !tx.OK})
	a.touch(at)
}

func (l *Ledger) account(n job.Need, at chain.BlockRef) *account {
	a := &account{Row: Row{Kind: n.Kind, Key: n.Key, IsLong: n.IsLong, State: Waiting}}
	a.touch(at)
	l.open[n] = a
	l.checks = append(l.checks, expiryCheck{at.TimeMs + l.cfg.Patience, n, a})
	return a
}

func (a *account) touch(at chain.BlockRef) { a.last, a.lastMs = at.Number, at.TimeMs }

func (l *Ledger) booked(at chain.BlockRef, tx Transaction) Tx {
	return Tx{
		Hash: tx.Hash, From: tx.From, Tier: l.cfg.Roster[tx.From], Block: at.Number, TimeMs: at.TimeMs, Gas: tx.GasUsed,
		GasPrice: tx.GasPrice,
	}
}

// called reports whether the calldata names a job.
func (tx Transaction) called() bool { return tx.Call != job.Need{} }
