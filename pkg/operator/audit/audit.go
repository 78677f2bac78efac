package audit

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/tier/execution/ledger"
)

// Chain is the node that is asked; an [evm.Client] is one.
type Chain interface {
	BlockAt(ctx context.Context, number uint64) (evm.Block, error)
	Receipts(ctx context.Context, block evm.Block) ([]evm.Receipt, error)
	Calldata(ctx context.Context, tx chain.Tx) ([]byte, error)
	Verified(block evm.Block, receipt evm.Receipt) (chain.Tx, error)
}

// Config is whose work is looked for.
type Config struct {
	Venue gmx.Venue
	// Roster maps signers to keepers, by their tiers from 1.
	Roster map[chain.Address]int
}

const (
	// workers is how many blocks are read at the same time.
	workers = 8
	// lead is how long before the range reading begins: what can be executed in the range and was asked for before
	// it has its age from there. A market order lives for five minutes, so none is older.
	lead = 5 * time.Minute
	// patience is how long after the last word about a job a transaction may still come too late for it; see
	// [ledger.Config].
	patience = 10 * time.Minute
)

// Result is the outcome of an audit.
type Result struct {
	ledger.Totals
	From, To chain.BlockRef
}

// Run audits the blocks from and to, both included, and hands over the account of each job when it is closed, about in
// the order of the chain.
func Run(ctx context.Context, node Chain, cfg Config, from, to uint64, row func(ledger.Row) error) (result Result,
	err error) {
	if from > to {
		return Result{}, fmt.Errorf("from block %d to block %d is no range: give the earlier one first", from, to)
	}
	last, err := node.BlockAt(ctx, to)
	if evm.NotFound(err) {
		return Result{}, fmt.Errorf("block %d is not there (yet): end at a block the chain has: %w", to, err)
	} else if err != nil {
		return Result{}, err
	}
	first, err := node.BlockAt(ctx, from)
	if err != nil {
		return Result{}, history(from, err)
	}
	begin, err := FirstSince(ctx, node, first.BlockRef, first.TimeMs-min(first.TimeMs, uint64(lead.Milliseconds())))
	if err != nil {
		return Result{}, fmt.Errorf("looking for the block %s before block %d: %w", lead, from, err)
	}
	result.From, result.To = first.BlockRef, last.BlockRef
	books := ledger.New(ledger.Config{Roster: cfg.Roster, From: from, Patience: uint64(patience.Milliseconds())})
	r := reader{node: node, decoder: gmx.NewDecoder().Passing(), cfg: cfg, handlers: cfg.Venue.Executors()}
	err = r.each(ctx, begin, to, func(s blockRead) error {
		closed, err := books.Block(s.Block)
		if err != nil {
			return fmt.Errorf("the chain changed while it was read (end at its finalized block): %w", err)
		}
		return hand(closed, row)
	})
	if err != nil {
		return Result{}, err
	}
	rest, totals := books.Close()
	result.Totals = totals
	return result, hand(rest, row)
}

func hand(rows []ledger.Row, row func(ledger.Row) error) error {
	for _, r := range rows {
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

// FirstSince returns the number of the first block, at most head's, that is not older than a time (Unix ms).
func FirstSince(ctx context.Context, node Chain, head chain.BlockRef, timeMs uint64) (uint64, error) {
	if timeMs >= head.TimeMs {
		return head.Number, nil
	}
	// Blocks come about evenly, so that a stride that doubles finds an older one in few steps, all of them recent:
	// nodes that have thrown old history away can be asked.
	high, stride := head.Number, uint64(64)
	low := high
	for low > 0 {
		low -= min(low, stride)
		b, err := node.BlockAt(ctx, low)
		if err != nil {
			return 0, history(low, err)
		}
		if b.TimeMs < timeMs {
			break
		}
		high, stride = low, stride*2
	}
	for low+1 < high { // low is older, or block 0; high is not
		middle := low + (high-low)/2
		b, err := node.BlockAt(ctx, middle)
		switch {
		case err != nil:
			return 0, history(middle, err)
		case b.TimeMs < timeMs:
			low = middle
		default:
			high = middle
		}
	}
	return high, nil
}

// history explains why a block of the past, which the chain must have, is not to be had.
func history(number uint64, err error) error {
	if evm.NotFound(err) || evm.Refused(err) {
		return fmt.Errorf("block %d is not to be had: the node has thrown its history away "+
			"(begin later, or name an archive node in chain.urls): %w", number, err)
	}
	return err
}
