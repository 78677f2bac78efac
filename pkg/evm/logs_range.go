package evm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// LogsRange returns the chosen logs of the blocks between from and to, both included, in the chain's order. It asks for
// as many blocks at once as each endpoint is known to give, learns from what nodes answer, and takes the receipts of a
// block whose logs are more than a node gives.
//
// Every log is within the range, chosen by the filter and of no removed block, and the logs of one number are of one
// block. What is not shown: that the blocks are canonical, and that none of their logs is missing; headers tell both
// (see Blocks). Ask for finalized blocks only: different parts of the range may come from different endpoints.
// NotFound(err) where no endpoint that answers has the whole range yet.
func (r Reader) LogsRange(ctx context.Context, from, to uint64, f Filter) ([]chain.Log, error) {
	var all []chain.Log
	for at := from; at <= to; {
		c, err := eachInTurn(ctx, r, ForLogs, func(e *endpoint) (chunk, error) { return r.chunk(ctx, e, at, to, f) })
		if err != nil {
			return nil, fmt.Errorf("asking for the logs of blocks %d to %d: %w", at, to, err)
		}
		all = append(all, c.logs...)
		if c.last == to { // also where at would overflow
			break
		}
		at = c.last + 1
	}
	return all, nil
}

// chunk are the logs up to a block.
type chunk struct {
	logs []chain.Log
	last uint64
}

// chunk reads the logs from a block on, up to some block at most to, from one endpoint: smaller and smaller until it
// gives it. Few requests are refused: the size at least halves each time the node gives no better advice.
func (r Reader) chunk(ctx context.Context, e *endpoint, from, to uint64, f Filter) (chunk, error) {
	for {
		last := to
		if size := e.span.next(); to-from >= size {
			last = from + size - 1
		}
		if err := r.reaches(ctx, e, last); err != nil {
			return chunk{}, err
		}
		logs, err := r.inPieces(ctx, e, from, last, f, e.span.pieces())
		n := last - from + 1
		if err == nil {
			e.span.worked(time.Now(), n)
			return chunk{logs, last}, nil
		}
		r.pool.metrics.logsRefusals.WithLabelValues(string(SortLogsAnswer(err).Class)).Inc()
		switch v := SortLogsAnswer(err); v.Class {
		case LogsShrink, LogsSuggested, LogsHalve:
			if n == 1 {
				logs, err := r.logsOfReceipts(ctx, from, f)
				return chunk{logs, from}, err
			}
			e.span.advise(time.Now(), from, last, v)
		default:
			return chunk{}, err
		}
	}
}

// reaches makes sure that an endpoint has a block: of blocks that it does not have yet a node silently returns no logs.
func (r Reader) reaches(ctx context.Context, e *endpoint, number uint64) error {
	if e.head().Number >= number {
		return nil
	}
	head, err := put(ctx, e, tagged("latest"))
	if err != nil {
		return err
	}
	r.pool.sawHead(e, head)
	if head.Number < number {
		return e.failed(ctx, labelRange,
			&notFoundError{fmt.Sprintf("block %d, above its head %d,", number, head.Number)}, 0)
	}
	return nil
}

// advise makes the next range smaller, as the node's answer to a range of more than one block says.
func (s *span) advise(now time.Time, from, last uint64, v LogsVerdict) {
	n := last - from + 1
	if v.Class == LogsSuggested && v.Limit > 0 {
		s.refused(now, n, v.Limit)
	}
	switch {
	case v.Class == LogsShrink:
		s.refused(now, n, v.Limit)
	case v.Class == LogsSuggested && v.From <= from && from <= v.To && v.To < last:
		s.crowded(v.To - from + 1)
	case v.Class == LogsSuggested && v.To-v.From < n-1: // a range elsewhere: only its width says something
		s.crowded(v.To - v.From + 1)
	default:
		s.crowded(n / 2)
	}
}

// inPieces reads a range with the filter halved so many times, and once more each time the node refuses it as too wide.
func (r Reader) inPieces(ctx context.Context, e *endpoint, from, last uint64, f Filter, halvings int) ([]chain.Log,
	error) {
	if halvings > 0 {
		if a, b, ok := f.halves(); ok {
			return r.both(ctx, e, from, last, a, b, halvings-1)
		}
	}
	logs, err := r.getRange(ctx, e, from, last, f)
	if err == nil || SortLogsAnswer(err).Class != LogsSplit {
		return logs, err
	}
	a, b, ok := f.halves()
	if !ok {
		return nil, err
	}
	e.span.split(e.span.pieces() + 1)
	return r.both(ctx, e, from, last, a, b, 0)
}

// both joins the logs of two filters that choose none in common, in the chain's order.
func (r Reader) both(ctx context.Context, e *endpoint, from, last uint64, a, b Filter, halvings int) ([]chain.Log,
	error) {
	first, err := r.inPieces(ctx, e, from, last, a, halvings)
	if err != nil {
		return nil, err
	}
	second, err := r.inPieces(ctx, e, from, last, b, halvings)
	if err != nil {
		return nil, err
	}
	logs := slices.SortedFunc(slices.Values(append(first, second...)), func(a, b chain.Log) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
	})
	for i := 1; i < len(logs); i++ {
		if logs[i].Block == logs[i-1].Block && logs[i].BlockHash != logs[i-1].BlockHash {
			return nil, fmt.Errorf("reading the logs of block %d in parts: the chain changed meanwhile", logs[i].Block)
		}
	}
	return logs, nil
}

// getRange is one eth_getLogs. It never goes into a batch: providers refuse that.
func (r Reader) getRange(ctx context.Context, e *endpoint, from, last uint64, f Filter) ([]chain.Log, error) {
	first, end := hexNumber(from), hexNumber(last)
	raw, err := e.askAs(ctx, labelRange, methodLogs, filterArg{From: &first, To: &end, Addresses: f.Addresses,
		Topics: [][]chain.Hash{f.Topics}})
	if err != nil {
		return nil, err
	}
	var before logReply
	logs, err := readLogs(raw, f, func(l logReply) error {
		same := l.Block == before.Block
		one := l.BlockHash == before.BlockHash
		switch {
		case l.Block < from || l.Block > last:
			return lie("log %d of block %d is not within blocks %d to %d", l.Index, l.Block, from, last)
		case l.removed:
			return lie("log %d of block %d says it was removed", l.Index, l.Block)
		case !before.BlockHash.IsZero() && same != one:
			return lie("logs of block %d %s and of block %d %s", before.Block, before.BlockHash, l.Block, l.BlockHash)
		}
		before = l
		return nil
	})
	if err != nil {
		return nil, e.failed(ctx, labelRange, err, 0)
	}
	return logs, nil
}

// logsOfReceipts takes the logs of one block from its receipts.
func (r Reader) logsOfReceipts(ctx context.Context, number uint64, f Filter) ([]chain.Log, error) {
	block, err := r.BlockAt(ctx, number)
	if err != nil {
		return nil, err
	}
	receipts, proven, err := r.Receipts(ctx, block)
	if err != nil {
		return nil, err
	}
	if !proven {
		return nil, fmt.Errorf("the receipts of block %d cannot be proven, and no endpoint gives its logs", number)
	}
	var logs []chain.Log
	for _, receipt := range receipts {
		for _, l := range receipt.Logs {
			if f.Matches(l) {
				logs = append(logs, l)
			}
		}
	}
	return logs, nil
}
