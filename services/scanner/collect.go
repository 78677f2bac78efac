package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// remembered is how many orders and positions the router knows the owner of, at least. Only few events need it; the
// DataStore knows the others.
const remembered = 100_000

// collector finds out what the topic has to say of a block.
type collector struct {
	chain    *evm.Client
	venue    *gmx.Follower
	own      Settings
	store    dataStore
	log      zerolog.Logger
	metrics  *Metrics
	readers  chan struct{} // bounds how many blocks of history are read at the same time
	decoder  *gmx.Decoder
	named    map[string]bool // unknown events that were named in the log
	handlers *handlers

	mu     sync.Mutex // guards router, because tails are learnt from side by side
	router *gmx.Router
}

// learn remembers the owners that a message of the topic names.
func (c *collector) learn(m wire.Message) {
	if l, is := m.(wire.Log); is {
		c.mu.Lock()
		defer c.mu.Unlock()
		// it has been routed before; only what the router notes on the way matters here
		_, _ = c.router.Route([]chain.Log{l.Log})
	}
}

// collect reads a block's share of the topic. Its errors pass, unless marked by retry.Stop.
func (c *collector) collect(ctx context.Context, header evm.Header, readWords bool) (out content, err error) {
	found, err := c.read(ctx, header)
	if err != nil {
		return content{}, err
	}
	var words []wire.Param
	if readWords {
		if words, err = c.store.params(ctx, c.own.FirstWords, found.block); err != nil {
			return content{}, err
		}
	}
	return c.complete(ctx, found, words)
}

// found is what a block's receipts prove of ours, not routed yet.
type found struct {
	block chain.BlockRef
	logs  []chain.Log
	txs   []chain.Tx
}

// complete makes a block's content of what was found. It must be called in the order of the chain: owners are learnt
// on the way. Logs that this build cannot route are where it rests.
func (c *collector) complete(ctx context.Context, f found, words []wire.Param) (content, error) {
	logs, err := c.route(ctx, f.block, f.logs)
	if unroutable, is := errors.AsType[*unroutableError](err); is {
		return content{}, retry.Stop(unroutable)
	}
	c.nameUnknown(logs)
	return content{block: f.block, params: words, logs: logs, txs: f.txs}, err
}

// nameUnknown names each event once that this build passes over without knowing it.
func (c *collector) nameUnknown(logs []routedLog) {
	for _, l := range logs {
		if name, is := c.decoder.Unknown(l.Log); is && !c.named[name] {
			c.named[name] = true
			c.log.Warn().Str("event", name).Uint64("block", l.Block).Stringer("transaction", l.TxHash).
				Msg("unknown event of administration: recorded and passed over")
		}
	}
}

// concerns reports whether a block can hold logs of ours, by its header's bloom.
func (c *collector) concerns(block evm.Header) bool { return c.filter().MayMatch(block.Bloom) }

// read reads what a block's receipts prove of ours. Where its bloom excludes us its header is enough.
func (c *collector) read(ctx context.Context, header evm.Header) (found, error) {
	if !c.concerns(header) {
		return found{block: header.BlockRef}, nil
	}
	block, err := c.chain.BlockWithReceipts(ctx, header.Hash)
	if err != nil {
		return found{}, err
	}
	out := found{block: block.BlockRef}
	receipts, err := c.chain.Receipts(ctx, block)
	if err == nil {
		out.logs = c.filter().Choose(receipts...)
		out.txs, err = c.transactions(block, receipts, out.logs)
	}
	if err != nil {
		return found{}, &unprovenError{block.Number, err}
	}
	return out, nil
}

// unprovenError reports that no endpoint serves receipts that prove what is in a block. It is waited for: nothing
// unproven is published (PIPE-13).
type unprovenError struct {
	block uint64
	cause error
}

func (e *unprovenError) Error() string {
	return fmt.Sprintf("block %d is not published before an endpoint serves receipts that prove it: %v", e.block,
		e.cause)
}

func (e *unprovenError) Unwrap() error { return e.cause }

// transactions returns the transactions with logs of ours, as they were signed, and what became of them.
func (c *collector) transactions(block evm.Block, receipts []evm.Receipt, logs []chain.Log) (txs []chain.Tx, _ error) {
	for _, r := range receipts {
		if !slices.ContainsFunc(logs, func(l chain.Log) bool { return l.TxHash == r.Hash }) {
			continue
		}
		tx, err := c.chain.Verified(block, r)
		if err != nil {
			return nil, err
		}
		txs = append(txs, tx)
	}
	return txs, nil
}

// route finds the key of each log, transaction by transaction.
func (c *collector) route(ctx context.Context, block chain.BlockRef, logs []chain.Log) ([]routedLog, error) {
	var routed []routedLog
	for len(logs) > 0 {
		end := slices.IndexFunc(logs, func(l chain.Log) bool { return l.TxHash != logs[0].TxHash })
		if end < 0 {
			end = len(logs)
		}
		keys, err := c.keys(ctx, block, logs[:end])
		if err != nil {
			return nil, err
		}
		for i, key := range keys {
			routed = append(routed, routedLog{logs[i], key})
		}
		logs = logs[end:]
	}
	return routed, nil
}

// unroutableError reports that a log's place in the topic cannot be found: it cannot be read, or it names nobody.
// Nothing of its block is published, and waiting does not help.
type unroutableError struct {
	block uint64
	cause error
}

func (e *unroutableError) Error() string {
	return fmt.Sprintf("block %d is not published, nor what follows, until a build can route its log: %v", e.block,
		e.cause)
}

func (e *unroutableError) Unwrap() error { return e.cause }

// keys routes the logs of one transaction. What neither the transaction nor memory shows is looked up.
func (c *collector) keys(ctx context.Context, block chain.BlockRef, logs []chain.Log) ([]chain.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for lookedUp := map[chain.Hash]bool{}; ; {
		keys, err := c.router.Route(logs)
		unknown, is := errors.AsType[*gmx.UnknownOwnerError](err)
		switch {
		case err == nil:
			return keys, nil
		case !is || lookedUp[unknown.Key]:
			return nil, &unroutableError{block.Number, err}
		}
		account, lookUpErr := c.lookUp(ctx, block, unknown.Key)
		if lookUpErr != nil {
			return nil, lookUpErr
		}
		c.router.Learn(unknown.Key, account) // also that it is nobody's: what is not understood has other ways to go
		lookedUp[unknown.Key] = true
	}
}

// lookUp reads the owner of an order or a position before the block, where it stands if the block ends it, or else
// after it; zero if the DataStore knows none.
func (c *collector) lookUp(ctx context.Context, block chain.BlockRef, key chain.Hash) (chain.Address, error) {
	parent := chain.BlockRef{Number: block.Number - 1, Hash: block.Parent}
	for _, at := range []chain.BlockRef{parent, block} {
		if account, err := c.store.account(ctx, key, at); err != nil || !account.IsZero() {
			return account, err
		}
	}
	return chain.Address{}, nil
}
