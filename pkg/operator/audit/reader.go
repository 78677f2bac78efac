package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution/ledger"
)

// reader makes of the chain what the books need.
type reader struct {
	node     Chain
	decoder  *gmx.Decoder
	cfg      Config
	handlers []chain.Address
}

// blockRead is one block, or why it could not be read.
type blockRead struct {
	ledger.Block
	err error
}

// each reads blocks, several at a time, and hands them over in order. It waits for what it has begun before it returns.
func (r reader) each(ctx context.Context, from, to uint64, take func(blockRead) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	ahead := make(chan chan blockRead, workers-1) // with the one that is waited for, so many are on their way
	running.Go(func() {
		defer close(ahead)
		for n := from; n <= to; n++ {
			coming := make(chan blockRead, 1)
			select {
			case ahead <- coming:
			case <-ctx.Done():
				return
			}
			running.Go(func() { coming <- r.block(ctx, n) })
		}
	})
	for coming := range ahead {
		s := <-coming
		if s.err != nil {
			return s.err
		}
		if err := take(s); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// block reads one block. Of most there is nothing to say but that they are there.
func (r reader) block(ctx context.Context, number uint64) (s blockRead) {
	block, err := r.node.BlockAt(ctx, number)
	if err != nil {
		return blockRead{err: history(number, err)}
	}
	s.Ref = block.BlockRef
	filter := evm.Filter{Addresses: r.cfg.Venue.EventEmitters(), Topics: gmx.Topics()[0]}
	if !filter.MayMatch(block.Bloom) && !slices.ContainsFunc(block.Txs, r.concerns) {
		return s
	}
	receipts, err := r.node.Receipts(ctx, block)
	if err != nil {
		return blockRead{err: history(number, err)}
	}
	for _, receipt := range receipts {
		logs := filter.Choose(receipt)
		if len(logs) == 0 && !r.concerns(receipt.Tx) {
			continue
		}
		signed, err := r.node.Verified(block, receipt)
		if err != nil {
			return blockRead{err: err}
		}
		tx, err := r.transaction(ctx, signed, logs, block.TimeMs)
		if err != nil {
			return blockRead{err: fmt.Errorf("block %d: %w", number, err)}
		}
		s.Txs = append(s.Txs, tx)
	}
	return s
}

// concerns reports whether a transaction is a keeper's, or goes to where jobs are executed, whatever came of it.
func (r reader) concerns(tx chain.Tx) bool {
	return r.cfg.Roster[tx.From] != 0 || slices.Contains(r.handlers, tx.To)
}

func (r reader) transaction(ctx context.Context, tx chain.Tx, logs []chain.Log, timeMs uint64) (out ledger.Transaction,
	err error) {
	out.Tx = tx
	if out.Events, err = r.events(logs, timeMs); err != nil {
		return out, err
	}
	for _, l := range logs {
		if _, _, second, is := gmx.OracleReport(l); is && (out.OracleMs == 0 || second*1000 < out.OracleMs) {
			out.OracleMs = second * 1000
		}
	}
	if !r.concerns(tx) {
		return out, nil
	}
	calldata, err := r.node.Calldata(ctx, tx)
	if err != nil {
		return out, err
	}
	if call, is := gmx.ReadCall(calldata); is {
		out.Call = job.NeedOf(call.Kind, call.Key, call.IsLong)
	}
	return out, nil
}

func (r reader) events(logs []chain.Log, timeMs uint64) ([]perp.Event, error) {
	if len(logs) == 0 {
		return nil, nil
	}
	return r.decoder.Transaction(logs, timeMs)
}
