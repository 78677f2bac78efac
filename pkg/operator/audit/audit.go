package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/service/check"
	"perpkeeper/pkg/tier/execution/ledger"
)

// Chain is the node that is asked; an [evm.Client] is one.
type Chain interface {
	BlockAt(ctx context.Context, number uint64) (evm.Block, error)
	Receipts(ctx context.Context, block evm.Block) ([]evm.Receipt, error)
	Calldata(ctx context.Context, tx chain.Tx) ([]byte, error)
	Verified(block evm.Block, receipt evm.Receipt) (chain.Tx, error)
}

// Config is how an audit reads the chain.
type Config struct {
	Venue gmx.Venue
	// Roster maps signers to keepers, by their tiers from 1.
	Roster map[chain.Address]int
	// Workers is how many blocks are read at the same time.
	Workers int
	// Lead is how long before the range to begin reading: whatever can be executed in the range and was asked for
	// before it has its age from there.
	Lead time.Duration
	// Patience is how long after the last word about a job a transaction may still come too late for it; see
	// [ledger.Config].
	Patience time.Duration
}

// DefaultConfig lacks the exchange and the roster. A market order lives for five minutes, so none is older than the
// lead.
func DefaultConfig() Config {
	return Config{Workers: 8, Lead: 5 * time.Minute, Patience: 10 * time.Minute}
}

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	return errors.Join(
		check.Refuse(len(c.Roster) == 0, "no roster: nobody's signers are named, so nobody could be told from anybody "+
			"else"),
		check.Refuse(c.Workers < 1 || c.Workers > 64, "%d blocks at the same time is not between 1 and 64", c.Workers),
		check.Refuse(c.Lead < 0 || c.Lead > 24*time.Hour, "a lead of %s is not between 0s and 24h", c.Lead),
		check.Refuse(c.Patience < time.Second || c.Patience > 24*time.Hour,
			"a patience of %s is not between 1s and 24h",
			c.Patience),
		check.Refuse(len(c.Venue.EventEmitters()) == 0, "the exchange's EventEmitter is not known"),
	)
}

// Result is the outcome of an audit.
type Result struct {
	ledger.Totals
	From, To chain.BlockRef
}

// Watch is called with the progress of an audit: the block that was booked last, and where it began and ends. It may be
// nil.
type Watch func(at, first, last uint64)

// Run audits the blocks from and to, both included, and hands over the account of each job when it is closed, about in
// the order of the chain.
func Run(ctx context.Context, node Chain, cfg Config, from, to uint64, watch Watch,
	row func(ledger.Row) error) (result Result, err error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
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
	begin, err := FirstSince(ctx, node, first.BlockRef, first.TimeMs-min(first.TimeMs, uint64(cfg.Lead.Milliseconds())))
	if err != nil {
		return Result{}, fmt.Errorf("looking for the block %s before block %d: %w", cfg.Lead, from, err)
	}
	result.From, result.To = first.BlockRef, last.BlockRef
	books := ledger.New(ledger.Config{Roster: cfg.Roster, From: from, Patience: uint64(cfg.Patience.Milliseconds())})
	r := reader{node: node, decoder: gmx.NewDecoder().Passing(), cfg: cfg, handlers: cfg.Venue.Executors()}
	err = r.each(ctx, begin, to, func(s blockRead) error {
		closed, err := books.Block(s.Block)
		if err != nil {
			return fmt.Errorf("the chain changed while it was read (end at its finalized block): %w", err)
		}
		if watch != nil {
			watch(s.Ref.Number, begin, to)
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
			"(begin later, shorten the lead, or name an archive node in chain.urls): %w", number, err)
	}
	return err
}
