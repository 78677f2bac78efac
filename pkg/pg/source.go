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

// Source is where the log topic has a block.
type Source struct {
	// Next is the offset after its last record.
	Next int64
	// Mark is that of its last record.
	Mark Mark
	// Digest is of its other records, whatever epoch wrote them: the same block with the same digest has the same
	// content.
	Digest Mark
}

// SourcedBlock is a kept block and where the topic has it.
type SourcedBlock struct {
	chain.BlockRef
	Source
}

var (
	selectSources = Register("sources of kept blocks",
		`SELECT block, hash, parent, time_ms, next_offset, mark, digest FROM {state}.kept_block
		WHERE part = $1 AND mark IS NOT NULL ORDER BY block`)
	moveSources = Register("move sources of kept blocks",
		`UPDATE {state}.kept_block k SET next_offset = u.next_offset, mark = u.mark
		FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS u (block, next_offset, mark) WHERE k.part = $1
			AND k.block = u.block`)
)

// Sources returns the kept blocks of which it is known where the topic has them, ascending.
func (p *Partition) Sources(ctx context.Context) ([]SourcedBlock, error) {
	doing := fmt.Sprintf("reading where the topic has the blocks of partition %d", p.offset.Partition)
	return List(ctx, p.db, doing, Columns(func(b *SourcedBlock) []any {
		return []any{&b.Number, Fixed(b.Hash[:]), Fixed(b.Parent[:]), &b.TimeMs, &b.Next, Fixed(b.Mark[:]),
			Fixed(b.Digest[:])}
	}), selectSources.In(p.generation), p.offset.Partition)
}

// Resumption is where a partition goes on after the topic has lost its end.
type Resumption struct {
	// Next, Mark and Epoch are those of the topic as it is now, be they higher or lower than before.
	Next  int64
	Mark  Mark
	Epoch uint64
	// At is the newest block that rows and topic have in common. What is above it in the rows is taken back. Zero for a
	// partition without a block.
	At chain.BlockRef
	// Found are blocks up to At that the topic has elsewhere than before.
	Found []SourcedBlock
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
	var numbers, ends []int64
	var marks [][]byte
	for _, b := range r.Found {
		numbers, ends, marks = append(numbers, int64(b.Number)), append(ends, b.Next), append(marks, b.Mark.stored())
	}
	return p.write(ctx, next, func(ctx context.Context, tx pgx.Tx) (batch *pgx.Batch, err error) {
		batch = &pgx.Batch{}
		if next.Rev != p.offset.Rev {
			if batch, err = p.undoBatch(ctx, tx, next); err != nil {
				return nil, err
			}
		}
		batch.Queue(moveSources.In(p.generation), next.Partition, numbers, ends, marks)
		return batch, nil
	})
}
