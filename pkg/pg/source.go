package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
)

// Mark is a hash by which a record, or what a block's records say, is known again. The zero Mark is not known.
type Mark [32]byte

// stored is a mark as the database holds it.
func (m Mark) stored() []byte {
	if m == (Mark{}) {
		return nil
	}
	return m[:]
}

func markOf(stored []byte) (m Mark) {
	copy(m[:], stored)
	return m
}

// Place is a place in a topic, behind a record.
type Place struct {
	// Next is the offset after the record.
	Next int64
	// Mark is that of the record.
	Mark Mark
}

// SourcedBlock is a kept block, and where the topic has its last record.
type SourcedBlock struct {
	chain.BlockRef
	Place
}

var selectSources = Register("sources of kept blocks",
	`SELECT block, hash, parent, time_ms, next_offset, mark FROM {state}.kept_block
	WHERE part = $1 AND mark IS NOT NULL ORDER BY block`)

// Sources returns the kept blocks of which it is known where the topic has them, ascending.
func (p *Partition) Sources(ctx context.Context) ([]SourcedBlock, error) {
	doing := fmt.Sprintf("reading where the topic has the blocks of partition %d", p.offset.Partition)
	return List(ctx, p.db, doing, Columns(func(b *SourcedBlock) []any {
		return []any{&b.Number, Fixed(b.Hash[:]), Fixed(b.Parent[:]), &b.TimeMs, &b.Next, Fixed(b.Mark[:])}
	}), selectSources.In(p.generation), p.offset.Partition)
}

// Resumption is where a partition goes on after the topic has lost its end: be it higher or lower than before.
type Resumption struct {
	Place
	Epoch uint64
	// At is the newest block that rows and topic have in common. What is above it in the rows is taken back. Zero for a
	// partition without a block.
	At chain.BlockRef
}

// Resume brings rows and offset to where rows and topic agree, in one transaction. For errors see [Partition.Undo].
func (p *Partition) Resume(ctx context.Context, r Resumption) error {
	next := p.offset
	next.Next, next.Mark, next.Epoch = r.Next, r.Mark, r.Epoch
	if !r.At.Hash.IsZero() {
		at, err := p.kept(ctx, r.At)
		if err != nil {
			return err
		}
		if !sameBlock(at, next.Tip) {
			next.Rev = p.nextRev()
		}
		next.Tip = at
	}
	return p.write(ctx, next, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		if next.Rev == p.offset.Rev {
			return &pgx.Batch{}, nil
		}
		return p.undoBatch(ctx, tx, next)
	})
}
