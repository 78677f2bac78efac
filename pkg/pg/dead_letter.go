package pg

import (
	"context"
	"fmt"
)

var (
	selectDeadLetter = Register("dead letter",
		`SELECT coalesce(dead_letter, -1) FROM {state}.stream_offset WHERE part = $1`)
	updateDeadLetter = Register("note dead letter",
		`UPDATE {state}.stream_offset SET dead_letter = $2 WHERE part = $1 AND owner = $3`)
)

// DeadLetter returns the offset of the last record of the partition that was sent to the dead letter topic, or -1.
func (p *Partition) DeadLetter(ctx context.Context) (offset int64, err error) {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	if err := p.db.pool.QueryRow(ctx, selectDeadLetter.In(p.generation), p.offset.Partition).Scan(&offset); err != nil {
		return 0, fmt.Errorf("asking for dead letters of partition %d: %w", p.offset.Partition, err)
	}
	return offset, nil
}

// NoteDeadLetter remembers that a record was sent to the dead letter topic.
func (p *Partition) NoteDeadLetter(ctx context.Context, offset int64) error {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	tag, err := p.db.pool.Exec(ctx, updateDeadLetter.In(p.generation), p.offset.Partition, offset, p.token)
	switch {
	case err != nil:
		return fmt.Errorf("noting a dead letter of partition %d: %w", p.offset.Partition, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("noting a dead letter of partition %d: %w", p.offset.Partition, errNotOwner)
	}
	return nil
}
