package chaos

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
)

// twin folds the canonical chain by itself, from proven receipts and without Kafka or Postgres, and follows it over
// reorgs: what every table must be equal to.
type twin struct {
	node    *evm.Client
	decoder *gmx.Decoder
	filter  evm.Filter
	book    *perp.Book
	first   uint64       // the exchange's deployment
	blocks  []chain.Hash // of the blocks folded, from first on
}

func newTwin(t *testing.T, chainID uint64, url string, emitter chain.Address, first uint64) *twin {
	t.Helper()
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(url)}
	node, err := evm.Dial(t.Context(), chainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	return &twin{
		node: node, decoder: gmx.NewDecoder(emitter), filter: evm.Filter{Addresses: []chain.Address{emitter},
			Topics: gmx.Topics()[0]},
		book: perp.NewBook(), first: first,
	}
}

// next is the number of the first block not folded.
func (w *twin) next() uint64 { return w.first + uint64(len(w.blocks)) }

// has tells whether a block has been folded and not been undone.
func (w *twin) has(block chain.BlockRef) bool {
	return block.Number >= w.first && block.Number < w.next() && w.blocks[block.Number-w.first] == block.Hash
}

// stand brings the fold to exactly a block. It fails if the block is not on the chain.
func (w *twin) stand(ctx context.Context, at chain.BlockRef) error {
	if err := w.back(ctx, at.Number); err != nil {
		return err
	}
	for w.next() <= at.Number {
		if err := w.forward(ctx); err != nil {
			return err
		}
	}
	if tip := w.blocks[len(w.blocks)-1]; tip != at.Hash {
		return fmt.Errorf("block %d %s is not on the chain, which has %s there", at.Number, at.Hash, tip)
	}
	return nil
}

// back undoes what is above a block, and what has left the chain.
func (w *twin) back(ctx context.Context, number uint64) error {
	for len(w.blocks) > 0 {
		tip := w.next() - 1
		if tip <= number {
			block, err := w.node.BlockAt(ctx, tip)
			if err == nil && block.Hash == w.blocks[len(w.blocks)-1] {
				return nil
			}
			if err != nil && !evm.NotFound(err) {
				return err
			}
		}
		if err := w.book.Undo(tip - 1); err != nil {
			return err
		}
		w.blocks = w.blocks[:len(w.blocks)-1]
	}
	return nil
}

// forward folds the next block: its logs, transaction by transaction, and the transactions that the topic records.
func (w *twin) forward(ctx context.Context) error {
	block, err := w.node.BlockAt(ctx, w.next())
	if err != nil {
		return err
	}
	receipts, err := w.receipts(ctx, block)
	if err != nil {
		return err
	}
	if err := w.book.Begin(block.Number); err != nil {
		return err
	}
	for _, r := range receipts {
		logs := w.filter.Choose(r)
		events, err := w.decoder.Transaction(logs, block.TimeMs)
		if err != nil {
			return err
		}
		if len(logs) > 0 {
			stamp := perp.Stamp{Block: block.Number, TxHash: r.Hash, TimeMs: block.TimeMs}
			events = append(events, perp.TransactionSeen{Transaction: perp.Transaction{Tx: r.Tx, Stamp: stamp}})
		}
		for _, handler := range gmx.Speakers(logs) {
			w.book.Put(perp.HandlerVersion(handler, perp.V22c))
		}
		for _, e := range events {
			if err := perp.Apply(w.book, e); err != nil {
				return err
			}
		}
	}
	w.blocks = append(w.blocks, block.Hash)
	return nil
}

// receipts are a block's, proven by its header.
func (w *twin) receipts(ctx context.Context, block evm.Block) ([]evm.Receipt, error) {
	if len(block.Txs) == 0 {
		return nil, nil
	}
	return w.node.Receipts(ctx, block)
}

// equals compares every table with the fold at the tables' watermark, where all partitions must stand, and which must
// be a given block of the chain or one above it.
func (w *twin) equals(ctx context.Context, db *pg.DB, least uint64) error {
	got, at, err := db.Checksums(ctx, 1)
	switch {
	case err != nil:
		return err
	case !at.Level():
		return fmt.Errorf("partitions stand apart by %d blocks below block %d, halted: %q", at.Skew(),
			at.Watermark.Number+at.Skew(), at.Halted)
	case at.Watermark.Number < least:
		return fmt.Errorf("the watermark stands at block %d, below %d", at.Watermark.Number, least)
	}
	if err := w.stand(ctx, at.Watermark); err != nil {
		return err
	}
	rows, err := pgtest.WithAudits(ctx, db, w.book)
	if err != nil {
		return err
	}
	want, err := pg.ChecksumsOf(rows)
	if err != nil {
		return err
	}
	for _, table := range perp.Tables() {
		// Audits say more of parameters than logs do.
		if table != perp.Parameters && got[table] != want[table] {
			return fmt.Errorf("table %s differs from the fold of the chain at block %d%s", table, at.Watermark.Number,
				w.difference(ctx, db, table))
		}
	}
	return nil
}

// difference shows an order that differs, for whoever reads the failure.
func (w *twin) difference(ctx context.Context, db *pg.DB, table perp.Table) string {
	for _, row := range w.book.Rows(table) {
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
