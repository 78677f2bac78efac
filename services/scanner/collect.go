package scanner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// remembered is how many orders and positions the router knows the owner of, at least. Only few events need it; the
// DataStore knows the others.
const remembered = 100_000

// collector finds out what the topic has to say of a block.
type collector struct {
	chain   *evm.Client
	filter  evm.Filter
	own     Settings
	targets []chain.Address // where transactions of signers go, as far as is known
	store   dataStore
	log     zerolog.Logger
	metrics *Metrics
	readers chan struct{} // bounds how many blocks of history are read at the same time
	nonces  nonces
	settled *nonceHistory // of the backfill under way

	mu      sync.Mutex // guards router, because tails are learnt from side by side, and trusted
	router  *gmx.Router
	trusted map[chain.Hash]found
}

// trust has a block that was published wrong go out with its proven content the next time, whatever nodes say of it
// then. What lies deeper below it than can be taken back is forgotten.
func (c *collector) trust(proven found) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.trusted,
		func(_ chain.Hash, f found) bool { return f.block.Number+chain.UndoHorizon < proven.block.Number })
	if c.trusted == nil {
		c.trusted = map[chain.Hash]found{}
	}
	c.trusted[proven.block.Hash] = proven
}

func (c *collector) trustedContent(block chain.Hash) (found, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	proven, known := c.trusted[block]
	return proven, known
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
func (c *collector) collect(ctx context.Context, block evm.Block, readWords bool) (out content, err error) {
	var words []wire.Param
	if readWords {
		if words, err = c.store.params(ctx, c.own.Params, block.BlockRef); err != nil {
			return content{}, err
		}
	}
	found, err := c.read(ctx, block, false)
	if err != nil {
		return content{}, err
	}
	return c.complete(ctx, found, words)
}

// found is what nodes say of a block: of ours, and not routed yet.
type found struct {
	block    chain.BlockRef
	logs     []chain.Log
	txs      []chain.Tx
	verified bool
}

// complete makes a block's content of what was found. It must be called in the order of the chain: owners are learnt on
// the way. Logs that nobody can route are the end of what this build understands, if they are proven; else they are the
// word of one endpoint, and another one is asked the next time.
func (c *collector) complete(ctx context.Context, f found, words []wire.Param) (content, error) {
	logs, err := c.route(ctx, f.block, f.logs)
	if unroutable, is := errors.AsType[*unroutableError](err); is {
		if f.verified {
			return content{}, retry.Stop(err)
		}
		c.chain.Suspect(f.block.Hash, evm.PartLogs, unroutable.Error())
		return content{}, fmt.Errorf("block %d is not published, its logs are not proven: %w", f.block.Number, err)
	}
	return content{block: f.block, params: words, logs: logs, txs: f.txs, verified: f.verified}, err
}

// concerns reports whether a block can hold anything of ours, by its header's bloom and the senders of its
// transactions.
func (c *collector) concerns(block evm.Block) bool {
	if c.filter.MayMatch(block.Bloom) {
		return true
	}
	if len(c.own.Signers) == 0 {
		return false
	}
	for i := range block.Txs {
		if c.own.sends(c.sender(block, i)) {
			return true
		}
	}
	return false
}

// sender returns who sent a transaction. Where it could matter to us the signature says so, and else the endpoint: to
// read every signature would take longer than all else that is done with a block. So an endpoint can still hide a
// signer's transaction, if it left no log, went where signers are not expected to send, and nobody else is asked.
func (c *collector) sender(block evm.Block, at int) chain.Address {
	tx := block.Txs[at]
	if c.own.sends(tx.From) || slices.Contains(c.targets, tx.To) {
		return c.chain.Sender(block, at)
	}
	return tx.From
}

// read finds the logs and transactions of ours in a block, from its receipts, which prove them. Where these are not to
// be had, or prove nothing, the block is unverified: its logs are taken from the node's log index, unless the bloom
// rules them out, and its transactions are as nodes tell them.
func (c *collector) read(ctx context.Context, block evm.Block, patient bool) (found, error) {
	out := found{block: block.BlockRef, verified: true}
	if !c.concerns(block) {
		return out, nil
	}
	if proven, known := c.trustedContent(block.Hash); known {
		return proven, nil
	}
	receipts, proven, err := c.receipts(ctx, block, patient)
	if err != nil {
		return found{}, err
	}
	out.verified = proven
	switch {
	case proven:
		out.logs = chosen(receipts, c.filter)
	case c.filter.MayMatch(block.Bloom):
		if out.logs, err = c.chain.Logs(ctx, block.BlockRef, c.filter); err != nil {
			return found{}, err
		}
	}
	out.txs, err = c.transactions(ctx, block, receipts, out.logs)
	return out, err
}

// receipts reads the block's receipts, proven if any node has such. None, without an error, means that the block is to
// be published without proof: because no node serves them, or because they failed to come and nobody waits for them at
// the head. History is patient, since it cannot be corrected.
func (c *collector) receipts(ctx context.Context, block evm.Block, patient bool) ([]evm.Receipt, bool, error) {
	receipts, proven, err := c.chain.Receipts(ctx, block)
	switch {
	case err != nil && (ctx.Err() != nil || patient && !evm.Refused(err)):
		return nil, false, err
	case err != nil:
		c.metrics.unverified.WithLabelValues("no_receipts").Inc()
		c.log.Debug().Err(err).Uint64("block", block.Number).Msg("no receipts of the block, so its logs cannot be " +
			"proven")
		return nil, false, nil
	case !proven && patient:
		return nil, false, fmt.Errorf("block %d: %w", block.Number, errUnproven)
	case !proven:
		c.metrics.unverified.WithLabelValues("wrong_receipts").Inc()
		c.log.Warn().Uint64("block", block.Number).Stringer("hash", block.Hash).
			Msg("the node's receipts do not hash to the block's receipts root")
	}
	return receipts, proven, nil
}

// transactions returns the transactions with logs of ours, and those of our signers, with what became of them.
func (c *collector) transactions(ctx context.Context, block evm.Block, receipts []evm.Receipt,
	logs []chain.Log) ([]chain.Tx, error) {
	var txs []chain.Tx
	for i, tx := range block.Txs {
		carries := slices.ContainsFunc(logs, func(l chain.Log) bool { return l.TxHash == tx.Hash })
		from := c.sender(block, i)
		if receipts != nil && receipts[i].From != tx.From { // whom the signature bears out; see evm.Reader.Receipts
			from = receipts[i].From
		}
		if !carries && !c.own.sends(from) {
			continue
		}
		if receipts != nil {
			mined := receipts[i].Tx
			mined.From = from
			txs = append(txs, mined)
			continue
		}
		receipt, err := c.chain.Receipt(ctx, tx.Hash)
		if err != nil {
			return nil, err
		}
		if receipt == nil || receipt.BlockHash != block.Hash {
			return nil, fmt.Errorf("transaction %s has left block %d meanwhile", tx.Hash, block.Number)
		}
		receipt.From = from
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

// unroutableError reports that a log's place in the topic cannot be found: its event is unknown, or it names nobody.
type unroutableError struct{ cause error }

func (e *unroutableError) Error() string { return e.cause.Error() }

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
			return nil, &unroutableError{err}
		}
		account, lookUpErr := c.lookUp(ctx, block, unknown.Key)
		if lookUpErr != nil {
			return nil, lookUpErr
		}
		if account.IsZero() {
			return nil, &unroutableError{err}
		}
		c.router.Learn(unknown.Key, account)
		lookedUp[unknown.Key] = true
	}
}

// lookUp reads the owner of an order or a position before the block, where it stands if the block ends it, or else
// after it; zero if the DataStore knows none.
func (c *collector) lookUp(ctx context.Context, block chain.BlockRef, key chain.Hash) (chain.Address, error) {
	c.metrics.lookUps.Inc()
	parent := chain.BlockRef{Number: block.Number - 1, Hash: block.Parent}
	for _, at := range []chain.BlockRef{parent, block} {
		if account, err := c.store.account(ctx, key, at); err != nil || !account.IsZero() {
			return account, err
		}
	}
	return chain.Address{}, nil
}

// errUnproven means that no node's receipts hash to a block's receipts root.
var errUnproven = errors.New("no node proves the block's receipts")

// proof returns a block's receipts only if they are proven.
func (c *collector) proof(ctx context.Context, block evm.Block) ([]evm.Receipt, error) {
	receipts, proven, err := c.chain.Receipts(ctx, block)
	if err == nil && !proven {
		err = fmt.Errorf("block %d: %w", block.Number, errUnproven)
	}
	return receipts, err
}
