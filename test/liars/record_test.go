package liars

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
)

// record is what the canonical chain says, read from the devnet's own node and folded without Kafka or Postgres. It
// follows the chain over reorgs.
type record struct {
	url     string
	node    *evm.Client
	decoder *gmx.Decoder
	filter  evm.Filter
	signers map[chain.Address]bool
	book    *perp.Book
	first   uint64 // the exchange's deployment
	blocks  []block
}

// block is a folded block of the chain.
type block struct {
	chain.BlockRef
	sent []sent
	// revived are positions opened or grown and orders created or changed: after that, another transaction for the same
	// key is no repetition.
	revived []chain.Hash
}

// sent is a transaction of the keeper and what it was for.
type sent struct {
	chain.Tx
	gmx.Call
}

func openRecord(ctx context.Context, d demo.Devnet) (*record, error) {
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(d.RPC)}
	node, err := evm.Dial(ctx, d.ChainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	emitter := d.Contracts["eventEmitter"]
	r := &record{
		url: d.RPC, node: node, decoder: gmx.NewDecoder(emitter),
		filter:  evm.Filter{Addresses: []chain.Address{emitter}, Topics: gmx.Topics()[0]},
		signers: map[chain.Address]bool{}, book: perp.NewBook(), first: d.Block,
	}
	for _, a := range d.Accounts {
		if a.Purpose == "keeper" {
			r.signers[a.Address] = true
		}
	}
	return r, nil
}

// next is the number of the first block not folded.
func (r *record) next() uint64 { return r.first + uint64(len(r.blocks)) }

// stand brings the fold to exactly a block. It fails if that is not on the chain.
func (r *record) stand(ctx context.Context, at chain.BlockRef) error {
	if err := r.back(ctx, at.Number); err != nil {
		return err
	}
	for r.next() <= at.Number {
		if err := r.forward(ctx); err != nil {
			return err
		}
	}
	if tip := r.blocks[len(r.blocks)-1]; tip.Hash != at.Hash {
		return fmt.Errorf("block %d %s is not on the chain, which has %s there", at.Number, at.Hash, tip.Hash)
	}
	return nil
}

// toHead brings the fold to the newest block.
func (r *record) toHead(ctx context.Context) error {
	head, err := r.node.Head(ctx)
	if err != nil {
		return err
	}
	return r.stand(ctx, head)
}

// back undoes what is above a block, and what has left the chain.
func (r *record) back(ctx context.Context, number uint64) error {
	for len(r.blocks) > 0 {
		tip := r.blocks[len(r.blocks)-1]
		if tip.Number <= number {
			hash, err := r.node.HashAt(ctx, tip.Number)
			if err == nil && hash == tip.Hash {
				return nil
			}
			if err != nil && !evm.NotFound(err) {
				return err
			}
		}
		if err := r.book.Undo(tip.Number - 1); err != nil {
			return err
		}
		r.blocks = r.blocks[:len(r.blocks)-1]
	}
	return nil
}

// forward folds the next block.
func (r *record) forward(ctx context.Context) error {
	b, err := r.node.BlockAt(ctx, r.next())
	if err != nil {
		return err
	}
	receipts, err := r.node.Receipts(ctx, b)
	if err != nil {
		return err
	}
	folded := block{BlockRef: b.BlockRef}
	for _, tx := range b.Txs {
		if !r.signers[tx.From] {
			continue
		}
		s, err := r.read(ctx, tx)
		if err != nil {
			return err
		}
		folded.sent = append(folded.sent, s)
	}
	if err := r.book.Begin(b.Number); err != nil {
		return err
	}
	if folded.revived, err = r.fold(b.TimeMs, r.filter.Choose(receipts...)); err != nil {
		return err
	}
	r.blocks = append(r.blocks, folded)
	return nil
}

// fold applies the logs of a block, transaction by transaction.
func (r *record) fold(timeMs uint64, logs []chain.Log) (revived []chain.Hash, err error) {
	for len(logs) > 0 {
		n := 1
		for n < len(logs) && logs[n].TxHash == logs[0].TxHash {
			n++
		}
		events, err := r.decoder.Transaction(logs[:n], timeMs)
		if err != nil {
			return nil, err
		}
		for _, handler := range gmx.Speakers(logs[:n]) {
			r.book.Put(perp.HandlerVersion(handler, perp.V22c))
		}
		for _, e := range events {
			if err := perp.Apply(r.book, e); err != nil {
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
		logs = logs[n:]
	}
	return revived, nil
}

// read asks what became of a transaction, and what it was for.
func (r *record) read(ctx context.Context, tx chain.Tx) (sent, error) {
	receipt, err := r.node.Receipt(ctx, tx.Hash)
	if err != nil || receipt == nil {
		return sent{}, fmt.Errorf("receipt of %s: %w", tx.Hash, err)
	}
	var m message
	var body struct{ Input hexutil.Bytes }
	raw, err := post(r.url, encode(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionByHash",
		"params": []any{tx.Hash.Hex()}}))
	if err != nil || json.Unmarshal(raw, &m) != nil || json.Unmarshal(m.Result, &body) != nil {
		return sent{}, fmt.Errorf("transaction %s: %w", tx.Hash, err)
	}
	call, _ := gmx.ReadCall(body.Input) // none: it only spends a nonce that nobody needs
	return sent{receipt.Tx, call}, nil
}

// twice names a job that was sent again after it had been executed, and nothing had made it due anew. A deleveraging,
// and its state, may be needed again at any time.
func (r *record) twice() error {
	done, revived := map[gmx.Call]sent{}, map[chain.Hash]uint64{} // in the newest block
	for _, b := range r.blocks {
		for _, key := range b.revived {
			revived[key] = b.Number
		}
		for _, tx := range b.sent {
			if tx.Kind == "" || tx.Kind == job.Adl || tx.Kind == job.AdlState {
				continue
			}
			if before, repeated := done[tx.Call]; repeated && revived[tx.Key] < before.Block {
				return fmt.Errorf("%s %s was sent twice: %s in block %d, and again %s in block %d (ok %v)", tx.Kind,
					tx.Key, before.Hash, before.Block, tx.Hash,
					tx.Block, tx.OK)
			}
			if tx.OK {
				done[tx.Call] = tx
			}
		}
	}
	return nil
}

// tally is what the chain says of a stretch of blocks.
type tally struct {
	executed, reverted int
	price              uint64        // wei per gas: half of the transactions paid no more
	slowest            time.Duration // from a market order or request to its end
}

// tally counts from a block on.
func (r *record) tally(from uint64) (t tally) {
	var prices []uint64
	for _, b := range r.blocks {
		for _, tx := range b.sent {
			if b.Number < from || tx.Kind == "" {
				continue
			}
			prices = append(prices, tx.GasPrice)
			if tx.OK {
				t.executed++
			} else {
				t.reverted++
			}
		}
	}
	if slices.Sort(prices); len(prices) > 0 {
		t.price = prices[len(prices)/2]
	}
	r.born(from, r.next(), func(_ string, final bool, birth, stamp perp.Stamp) {
		if final {
			t.slowest = max(t.slowest, time.Duration(stamp.TimeMs-birth.TimeMs)*time.Millisecond)
		}
	})
	return t
}

// open names a market order or request of the blocks from one up to another that has not ended.
func (r *record) open(from, to uint64) (missing error) {
	r.born(from, to, func(what string, final bool, birth, _ perp.Stamp) {
		if !final {
			missing = fmt.Errorf("%s of block %d has not ended", what, birth.Block)
		}
	})
	return missing
}

// born visits the market orders and requests of the blocks from one up to another: nothing but a keeper is between them
// and their end.
func (r *record) born(from, to uint64, visit func(what string, final bool, birth, stamp perp.Stamp)) {
	for _, row := range r.book.Rows(perp.Orders) {
		if o, is := row.(perp.Order); is && o.OrderType.IsMarket() && from <= o.Birth.Block && o.Birth.Block <= to {
			visit(fmt.Sprintf("order %s (%s)", o.Key, o.Status), o.Status.Final(), o.Birth, o.Stamp)
		}
	}
	for _, row := range r.book.Rows(perp.Requests) {
		if q, is := row.(perp.Request); is && from <= q.Birth.Block && q.Birth.Block <= to {
			visit(fmt.Sprintf("%s %s (%s)", q.Kind, q.Key, q.Status), q.Status.Final(), q.Birth, q.Stamp)
		}
	}
}

// equal holds the tables, where all partitions stand at one block, against the fold at that block, which must be at
// least the given one.
func (r *record) equal(ctx context.Context, db *pg.DB, least uint64) error {
	got, at, err := db.Checksums(ctx, 1)
	switch {
	case err != nil:
		return err
	case !at.Level():
		return fmt.Errorf("partitions stand apart by %d blocks, halted: %q", at.Skew(), at.Halted)
	case at.Watermark.Number < least:
		return fmt.Errorf("the tables stand at block %d, below %d", at.Watermark.Number, least)
	}
	if err := r.stand(ctx, at.Watermark); err != nil {
		return err
	}
	rows, err := pgtest.WithAudits(ctx, db, r.book)
	if err != nil {
		return err
	}
	want, err := pg.ChecksumsOf(rows)
	if err != nil {
		return err
	}
	for _, table := range perp.Tables() { // PARAM and TX records say more than logs do
		if table != perp.Parameters && table != perp.Transactions && got[table] != want[table] {
			return &differs{fmt.Errorf("table %s differs from the fold of the chain at block %d", table,
				at.Watermark.Number)}
		}
	}
	return nil
}

// differs says that the tables are not what the chain says.
type differs struct{ error }
