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
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// remembered is how many orders and positions the router knows the owner of, at least. Only few events need it; the DataStore knows the others.
const remembered = 100_000

// collector finds out what the topic has to say of a block.
type collector struct {
	chain   *evm.Client
	filter  evm.Filter
	own     Settings
	store   dataStore
	log     zerolog.Logger
	metrics *Metrics

	mu     sync.Mutex // guards router: tails are learnt from side by side
	router *gmx.Router
}

// learn remembers the owners that a message of the topic names.
func (c *collector) learn(m wire.Message) {
	if l, is := m.(wire.Log); is {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = c.router.Route([]chain.Log{l.Log}) // it has been routed before; only what the router notes on the way matters here
	}
}

// collect reads a block's share of the topic. Its errors pass, unless marked by retry.Stop.
func (c *collector) collect(ctx context.Context, block evm.Block, readWords bool) (content, error) {
	out := content{block: block.BlockRef, verified: true}
	var err error
	if readWords {
		if out.params, err = c.store.params(ctx, c.own.Params, block.BlockRef); err != nil {
			return content{}, err
		}
	}
	var logs []chain.Log
	suspect := c.filter.MayMatch(block.Bloom)
	if suspect {
		if logs, err = c.chain.Logs(ctx, block.BlockRef, c.filter); err != nil {
			return content{}, err
		}
	}
	if !suspect && !slices.ContainsFunc(block.Txs, func(tx chain.Tx) bool { return c.own.sends(tx.From) }) {
		return out, nil // the bloom proves that there is nothing
	}
	receipts, proven, err := c.receipts(ctx, block)
	if err != nil {
		return content{}, err
	}
	out.verified = proven || !suspect
	if proven && suspect {
		logs = c.judge(block, logs, chosen(receipts, c.filter))
	}
	if out.txs, err = c.transactions(ctx, block, receipts, logs); err != nil {
		return content{}, err
	}
	out.logs, err = c.route(ctx, block.BlockRef, logs)
	return out, err
}

// receipts reads the block's receipts; none where the node does not serve them by block.
func (c *collector) receipts(ctx context.Context, block evm.Block) ([]evm.Receipt, bool, error) {
	receipts, proven, err := c.chain.Receipts(ctx, block)
	switch {
	case evm.Refused(err):
		c.metrics.unverified.WithLabelValues("no_receipts").Inc()
		c.log.Debug().Err(err).Uint64("block", block.Number).Msg("no receipts of the block, so its logs cannot be proven")
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !proven:
		c.metrics.unverified.WithLabelValues("wrong_receipts").Inc()
		c.log.Warn().Uint64("block", block.Number).Stringer("hash", block.Hash).Msg("the node's receipts do not hash to the block's receipts root")
	}
	return receipts, proven, nil
}

// judge compares what the node's log index gave with what the receipts prove, and returns the proven logs.
func (c *collector) judge(block evm.Block, indexed, proven []chain.Log) []chain.Log {
	if !sameLogs(indexed, proven) {
		c.metrics.mismatches.Inc()
		c.log.Warn().Uint64("block", block.Number).Stringer("hash", block.Hash).Int("indexed", len(indexed)).Int("proven", len(proven)).
			Msg("the node's log index is wrong; the logs are taken from the receipts")
	}
	return proven
}

// transactions returns the transactions with logs of ours, and those of our signers, with what became of them.
func (c *collector) transactions(ctx context.Context, block evm.Block, receipts []evm.Receipt, logs []chain.Log) ([]chain.Tx, error) {
	var txs []chain.Tx
	for i, tx := range block.Txs {
		carries := slices.ContainsFunc(logs, func(l chain.Log) bool { return l.TxHash == tx.Hash })
		if !carries && !c.own.sends(tx.From) {
			continue
		}
		if receipts != nil {
			txs = append(txs, receipts[i].Tx)
			continue
		}
		receipt, err := c.chain.Receipt(ctx, tx.Hash)
		if err != nil {
			return nil, err
		}
		if receipt == nil || receipt.BlockHash != block.Hash {
			return nil, fmt.Errorf("transaction %s has left block %d meanwhile", tx.Hash, block.Number)
		}
		txs = append(txs, receipt.Tx)
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

// keys routes the logs of one transaction. What neither the transaction nor memory tells is looked up.
func (c *collector) keys(ctx context.Context, block chain.BlockRef, logs []chain.Log) ([]chain.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for lookedUp := map[chain.Hash]bool{}; ; {
		keys, err := c.router.Route(logs)
		unknown, is := errors.AsType[*gmx.UnknownOwnerError](err)
		if !is || lookedUp[unknown.Key] {
			return keys, retry.Stop(err)
		}
		account, lookUpErr := c.lookUp(ctx, block, unknown.Key)
		if lookUpErr != nil {
			return nil, lookUpErr
		}
		if account.IsZero() {
			return nil, retry.Stop(err)
		}
		c.router.Learn(unknown.Key, account)
		lookedUp[unknown.Key] = true
	}
}

// lookUp reads the owner of an order or a position before the block, where it stands if the block ends it, or else after it; zero if the DataStore
// is not configured, or knows none.
func (c *collector) lookUp(ctx context.Context, block chain.BlockRef, key chain.Hash) (chain.Address, error) {
	if c.store.at.IsZero() {
		return chain.Address{}, nil
	}
	c.metrics.lookUps.Inc()
	for _, at := range []chain.Hash{block.Parent, block.Hash} {
		if account, err := c.store.account(ctx, key, at); err != nil || !account.IsZero() {
			return account, err
		}
	}
	return chain.Address{}, nil
}
