package e2e

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// twin folds the canonical chain by itself, without Kafka or Postgres, and follows it over reorgs: what the tables must be equal to at every
// watermark.
type twin struct {
	node    *evm.Client
	decoder *gmx.Decoder
	filter  evm.Filter
	record  record
	first   uint64       // the exchange's deployment
	blocks  []chain.Hash // of the blocks folded, from first on
}

func (k *keeper) twin() *twin {
	k.t.Helper()
	node, err := evm.Dial(k.t.Context(), k.Devnet.ChainID, k.nodeConfig(), zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(node.Close)
	emitter := k.Devnet.Contracts["eventEmitter"]
	return &twin{
		node: node, decoder: gmx.NewDecoder(emitter), first: k.Devnet.Block,
		filter: evm.Filter{Addresses: []chain.Address{emitter}, Topics: gmx.Topics()[0]},
		record: record{book: perp.NewBook(), revived: map[chain.Hash][]chain.LogPos{}},
	}
}

// next is the number of the first block not folded.
func (w *twin) next() uint64 { return w.first + uint64(len(w.blocks)) }

// stand brings the fold to exactly a block. It fails if the block is not on the chain any more.
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
		if err := w.record.book.Undo(tip - 1); err != nil {
			return err
		}
		w.blocks = w.blocks[:len(w.blocks)-1]
	}
	return nil
}

func (w *twin) forward(ctx context.Context) error {
	block, err := w.node.BlockAt(ctx, w.next())
	if err != nil {
		return err
	}
	logs, err := w.node.Logs(ctx, block.BlockRef, w.filter)
	if err != nil {
		return err
	}
	if err := w.record.fold(w.decoder, block.BlockRef, logs); err != nil {
		return err
	}
	w.blocks = append(w.blocks, block.Hash)
	return nil
}

// equals compares the tables with the fold at the tables' watermark, which must be a block the caller has not seen before.
func (w *twin) equals(ctx context.Context, db *pg.DB, above uint64) (watermark uint64, err error) {
	got, at, err := db.Checksums(ctx, 1)
	switch {
	case err != nil:
		return 0, err
	case !at.Level():
		return 0, fmt.Errorf("partitions stand apart by %d blocks", at.Skew())
	case at.Watermark.Number <= above:
		return 0, fmt.Errorf("the watermark stands at block %d, not above %d", at.Watermark.Number, above)
	}
	if err := w.stand(ctx, at.Watermark.BlockRef); err != nil {
		return 0, err
	}
	want, err := pg.ChecksumsOf(w.record.book)
	if err != nil {
		return 0, err
	}
	return at.Watermark.Number, differing(got, want, at.Watermark.Number)
}
