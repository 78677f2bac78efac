package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Config has the signers, the first block that counts, and how long accounts stay open.
type Config struct {
	// Roster maps signers to keepers, by their tiers from 1.
	Roster map[chain.Address]int
	// From is the first block that counts. Earlier ones may be given for the due times of requests and the winners of
	// races.
	From uint64
	// Patience is how long (ms of chain time) after the last event of a job its account is kept open for transactions
	// that come too late. What nobody has executed by then is called waiting.
	Patience uint64
}

// Block is what the books need of a block: the transactions with events of the exchange, and those of keepers.
type Block struct {
	Ref chain.BlockRef
	Txs []Transaction // in the block's order
}

// Transaction is one of them.
type Transaction struct {
	chain.Tx
	Call     job.Need     // what it was called for; zero where the calldata names nothing
	Events   []perp.Event // decoded from its logs
	OracleMs uint64       // time (Unix ms) of the oldest price report it brought; 0 = unknown
}

// Ledger keeps the books. Its memory is the jobs of the last Patience and an age of four bytes for every other one. It
// is for one goroutine at a time.
type Ledger struct {
	cfg    Config
	open   map[job.Need]*account
	checks []expiryCheck // ordered by time, but for accounts with events since
	totals Totals
	tip    chain.BlockRef
}

// account is one job's.
type account struct {
	Row
	last   uint64 // block of its newest event
	lastMs uint64
	closed bool
}

// expiryCheck is when to look whether an account can be closed.
type expiryCheck struct {
	atMs uint64
	name job.Need
	of   *account
}

// New returns empty books.
func New(cfg Config) *Ledger {
	return &Ledger{cfg: cfg, open: map[job.Need]*account{}, totals: Totals{kinds: map[job.Kind]*Sum{}}}
}

// Block books what happened in the next block and returns the accounts that are closed by now. It fails if the block is
// not the child of the one before.
func (l *Ledger) Block(b Block) ([]Row, error) {
	if l.tip != (chain.BlockRef{}) && !b.Ref.Follows(l.tip) {
		return nil, fmt.Errorf("block %d %s does not follow block %d %s", b.Ref.Number, b.Ref.Hash, l.tip.Number,
			l.tip.Hash)
	}
	l.tip = b.Ref
	var rows []Row
	for _, tx := range b.Txs {
		rows = append(rows, l.book(b.Ref, tx)...)
	}
	return append(rows, l.closeExpired(b.Ref.TimeMs)...), nil
}

// Close returns the accounts that are still open, in the order of their last events, and the sums of all.
func (l *Ledger) Close() ([]Row, Totals) {
	var rest []*account
	for _, a := range l.open {
		rest = append(rest, a)
	}
	slices.SortFunc(rest, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.lastMs, b.lastMs), bytes.Compare(a.Key[:], b.Key[:]))
	})
	var rows []Row
	for _, a := range rest {
		rows = append(rows, l.close(a)...)
	}
	clear(l.open)
	return rows, l.totals
}

// closeExpired closes the accounts that have had no event for Config.Patience.
func (l *Ledger) closeExpired(nowMs uint64) (rows []Row) {
	for len(l.checks) > 0 && l.checks[0].atMs <= nowMs {
		due := l.checks[0]
		l.checks = l.checks[1:]
		switch again := due.of.lastMs + l.cfg.Patience; {
		case due.of.closed:
		case again > nowMs:
			due.atMs = again
			l.checks = append(l.checks, due)
		default:
			rows = append(rows, l.close(due.of)...)
			delete(l.open, due.name)
		}
	}
	return rows
}

// close books an account's sums, and returns its row if it has to do with the blocks that count.
func (l *Ledger) close(a *account) []Row {
	a.closed = true
	if a.State == Waiting && a.BornMs == 0 {
		a.State = Attempted
	}
	won := a.Winner != nil && a.Winner.Block >= l.cfg.From
	stands := a.State == Waiting && l.tip.Number >= l.cfg.From || a.State == Withdrawn && a.last >= l.cfg.From
	if !won && !stands && len(a.Losers) == 0 {
		return nil
	}
	l.totals.add(a.Row, won)
	return []Row{a.Row}
}
