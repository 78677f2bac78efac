// Package canon reads the canonical chain from a node and folds it without Kafka or Postgres: what every table of a
// keeper must be equal to, and what its signers have sent.
package canon

import (
	"context"
	"fmt"
	"reflect"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
)

// Chain is the canonical chain as far as it is folded. It follows the node over reorgs.
type Chain struct {
	Node *evm.Client
	Book *perp.Book

	rpc     *rpc.Client
	decoder *gmx.Decoder
	filter  evm.Filter
	signers map[chain.Address]bool
	first   uint64 // the exchange's deployment
	blocks  []block
}

// block is a folded block.
type block struct {
	chain.BlockRef
	sent []Sent
	// revived are positions opened or grown and orders created or changed: after that, another transaction for the same
	// key is no repetition.
	revived []chain.Hash
}

// Sent is a transaction of a signer and what it was for.
type Sent struct {
	chain.Tx
	gmx.Call
}

// Open reads from a node, from the block in which the exchange was deployed on.
func Open(ctx context.Context, chainID uint64, url string, emitter chain.Address, first uint64,
	signers ...chain.Address) (*Chain, error) {
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(url)}
	node, err := evm.Dial(ctx, chainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		node.Close()
		return nil, err
	}
	c := &Chain{
		Node: node, Book: perp.NewBook(), rpc: client, decoder: gmx.NewDecoder(emitter),
		filter:  evm.Filter{Addresses: []chain.Address{emitter}, Topics: gmx.Topics()[0]},
		signers: map[chain.Address]bool{}, first: first,
	}
	for _, s := range signers {
		c.signers[s] = true
	}
	return c, nil
}

// Close ends the connections.
func (c *Chain) Close() {
	c.Node.Close()
	c.rpc.Close()
}

// Next is the number of the first block that is not folded.
func (c *Chain) Next() uint64 { return c.first + uint64(len(c.blocks)) }

// Sent are the signers' transactions of the blocks from one on, in their order. Those that only spend a nonce have no
// kind.
func (c *Chain) Sent(from uint64) (all []Sent) {
	for _, b := range c.blocks {
		if b.Number >= from {
			all = append(all, b.sent...)
		}
	}
	return all
}

// ToHead brings the fold to the newest block.
func (c *Chain) ToHead(ctx context.Context) error {
	head, err := c.Node.Head(ctx)
	if err != nil {
		return err
	}
	return c.To(ctx, head)
}

// To brings the fold to exactly a block. It fails if the block is not on the chain.
func (c *Chain) To(ctx context.Context, at chain.BlockRef) error {
	if err := c.back(ctx, at.Number); err != nil {
		return err
	}
	for c.Next() <= at.Number {
		if err := c.forward(ctx); err != nil {
			return err
		}
	}
	if tip := c.blocks[len(c.blocks)-1]; tip.Hash != at.Hash {
		return fmt.Errorf("block %d %s is not on the chain, which has %s there", at.Number, at.Hash, tip.Hash)
	}
	return nil
}

// back undoes what is above a block, and what has left the chain.
func (c *Chain) back(ctx context.Context, number uint64) error {
	for len(c.blocks) > 0 {
		tip := c.blocks[len(c.blocks)-1]
		if tip.Number <= number {
			hash, err := c.Node.HashAt(ctx, tip.Number)
			if err == nil && hash == tip.Hash {
				return nil
			}
			if err != nil && !evm.NotFound(err) {
				return err
			}
		}
		if err := c.Book.Undo(tip.Number - 1); err != nil {
			return err
		}
		c.blocks = c.blocks[:len(c.blocks)-1]
	}
	return nil
}

// forward folds the next block: its logs, transaction by transaction, and the transactions that the topic records.
func (c *Chain) forward(ctx context.Context) error {
	b, err := c.Node.BlockAt(ctx, c.Next())
	if err != nil {
		return err
	}
	var receipts []evm.Receipt // proven by the block's header
	if len(b.Txs) > 0 {
		if receipts, err = c.Node.Receipts(ctx, b); err != nil {
			return err
		}
	}
	folded := block{BlockRef: b.BlockRef}
	for _, r := range receipts {
		if !c.signers[r.From] {
			continue
		}
		s, err := c.read(ctx, r.Tx)
		if err != nil {
			return err
		}
		folded.sent = append(folded.sent, s)
	}
	if err := c.Book.Begin(b.Number); err != nil {
		return err
	}
	for _, r := range receipts {
		revived, err := c.fold(b.TimeMs, r)
		if err != nil {
			return err
		}
		folded.revived = append(folded.revived, revived...)
	}
	c.blocks = append(c.blocks, folded)
	return nil
}

// fold applies the logs of a transaction.
func (c *Chain) fold(timeMs uint64, r evm.Receipt) (revived []chain.Hash, err error) {
	logs := c.filter.Choose(r)
	if len(logs) == 0 {
		return nil, nil
	}
	events, err := c.decoder.Transaction(logs, timeMs)
	if err != nil {
		return nil, err
	}
	stamp := perp.Stamp{Block: logs[0].Block, TxHash: r.Hash, TimeMs: timeMs}
	events = append(events, perp.TransactionSeen{Transaction: perp.Transaction{Tx: r.Tx, Stamp: stamp}})
	for _, handler := range gmx.Speakers(logs) {
		c.Book.Put(perp.HandlerVersion(handler, perp.V22c))
	}
	for _, e := range events {
		if err := perp.Apply(c.Book, e); err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case perp.PositionIncreased:
			revived = append(revived, e.Position.PositionKey)
		case perp.OrderCreated:
			revived = append(revived, e.Order.Key)
		case perp.OrderChanged:
			revived = append(revived, e.Key)
		}
	}
	return revived, nil
}

// read asks what a transaction was for.
func (c *Chain) read(ctx context.Context, tx chain.Tx) (Sent, error) {
	var body struct {
		To    chain.Address
		Input hexutil.Bytes
	}
	if err := c.rpc.CallContext(ctx, &body, "eth_getTransactionByHash", tx.Hash.Hex()); err != nil {
		return Sent{}, fmt.Errorf("transaction %s: %w", tx.Hash, err)
	}
	call, is := gmx.ReadCall(body.Input)
	if !is && (body.To != tx.From || len(body.Input) > 0) {
		return Sent{}, fmt.Errorf("transaction %s of block %d is no call of a keeper", tx.Hash, tx.Block)
	}
	return Sent{tx, call}, nil
}

// Twice names a job that was sent again after it had been executed, and nothing had made it due anew. A deleveraging,
// and its state, may be needed again at any time: the venue refuses what is too much.
func (c *Chain) Twice() error {
	done, revived := map[gmx.Call]Sent{}, map[chain.Hash]uint64{} // in the newest block
	for _, b := range c.blocks {
		for _, key := range b.revived {
			revived[key] = b.Number
		}
		for _, tx := range b.sent {
			if tx.Kind == "" || tx.Kind == job.Adl || tx.Kind == job.AdlState {
				continue
			}
			if before, repeated := done[tx.Call]; repeated && revived[tx.Key] < before.Block {
				return fmt.Errorf("%s %s was sent twice: %s in block %d, and again %s in block %d (ok %v)", tx.Kind,
					tx.Key, before.Hash, before.Block, tx.Hash, tx.Block, tx.OK)
			}
			if tx.OK {
				done[tx.Call] = tx
			}
		}
	}
	return nil
}

// Equals holds the tables of the active generation, where all partitions stand at one block, against the fold at that
// block, which must be at least the given one.
func (c *Chain) Equals(ctx context.Context, db *pg.DB, least uint64) error {
	active, err := db.ActiveGeneration(ctx)
	if err != nil {
		return err
	}
	got, at, err := pgtest.ChecksumsIn(ctx, db, active)
	switch {
	case err != nil:
		return err
	case !at.Level():
		return fmt.Errorf("partitions stand apart by %d blocks, halted: %q", at.Skew(), at.Halted)
	case at.Watermark.Number < least:
		return fmt.Errorf("the tables stand at block %d, below %d", at.Watermark.Number, least)
	}
	if err := c.To(ctx, at.Watermark); err != nil {
		return err
	}
	rows, err := pgtest.WithAudits(ctx, db, c.Book)
	if err != nil {
		return err
	}
	want, err := pgtest.ChecksumsOf(rows)
	if err != nil {
		return err
	}
	for _, table := range perp.Tables() { // audits say more of parameters than logs do
		if table != perp.Parameters && got[table] != want[table] {
			return fmt.Errorf("table %s differs from the fold of the chain at block %d%s", table, at.Watermark.Number,
				c.difference(ctx, db, table))
		}
	}
	return nil
}

// difference shows an order that differs, for whoever reads the failure.
func (c *Chain) difference(ctx context.Context, db *pg.DB, table perp.Table) string {
	for _, row := range c.Book.Rows(table) {
		order, is := row.(perp.Order)
		if !is {
			break
		}
		if found, err := db.Order(ctx, order.Key); err != nil || !found.Known || !reflect.DeepEqual(found.Row, order) {
			return fmt.Sprintf(": %+v, and not %+v (%t, %v)", found.Row, order, found.Known, err)
		}
	}
	return ""
}

// Unfinished names a market order or request of the blocks from one up to another that has not ended: nothing but a
// keeper is between them and their end.
func (c *Chain) Unfinished(from, to uint64) (missing error) {
	c.Born(from, to, func(what string, final bool, birth, _ perp.Stamp) {
		if !final {
			missing = fmt.Errorf("%s of block %d has not ended", what, birth.Block)
		}
	})
	return missing
}

// Born visits the market orders and requests of the blocks from one up to another.
func (c *Chain) Born(from, to uint64, visit func(what string, final bool, birth, stamp perp.Stamp)) {
	for _, row := range c.Book.Rows(perp.Orders) {
		if o, is := row.(perp.Order); is && o.OrderType.IsMarket() && from <= o.Birth.Block && o.Birth.Block <= to {
			visit(fmt.Sprintf("order %s (%s)", o.Key, o.Status), o.Status.Final(), o.Birth, o.Stamp)
		}
	}
	for _, row := range c.Book.Rows(perp.Requests) {
		if q, is := row.(perp.Request); is && from <= q.Birth.Block && q.Birth.Block <= to {
			visit(fmt.Sprintf("%s %s (%s)", q.Kind, q.Key, q.Status), q.Status.Final(), q.Birth, q.Stamp)
		}
	}
}
