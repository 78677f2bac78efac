package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
)

// Partition is one partition of a generation, claimed by this process. Its methods are for one goroutine at a time.
type Partition struct {
	db         *DB
	generation int
	token      uuid.UUID
	offset     Offset
	leastRev   int64 // of the next revision
}

// ClaimRequest names a partition.
type ClaimRequest struct {
	Generation int
	Partition  int
	// Partitions is how many the log topic has. It is fixed for a generation: rows live where their key points.
	Partitions int
	// Label names the claimant for people.
	Label string
}

var (
	lockGeneration = Register("lock generation",
		`SELECT layout, coalesce(partitions, 0) FROM keeper.generation WHERE number = $1 FOR UPDATE`)
	setPartitions = Register("set partitions", `UPDATE keeper.generation SET partitions = $2 WHERE number = $1`)
	claimOffset   = Register("claim offset",
		`INSERT INTO {state}.stream_offset AS o (part, next_offset, epoch, rev, rev_floor, owner, owner_label,
			claimed_at)
		VALUES ($1, 0, 0, 0, 0, $2, $3, clock_timestamp())
		ON CONFLICT (part) DO UPDATE SET owner = excluded.owner, owner_label = excluded.owner_label, claimed_at =
			excluded.claimed_at
		RETURNING `+offsetColumns)
	selectKept = Register("kept blocks",
		`SELECT block, hash, parent, time_ms FROM {state}.kept_block WHERE part = $1 ORDER BY block`)
)

// Claim makes this process the only one that can write the partition, from now until somebody else claims it. It waits
// for a transaction of the former owner that is under way.
func (db *DB) Claim(ctx context.Context, r ClaimRequest) (*Partition, error) {
	p := &Partition{db: db, generation: r.Generation, token: uuid.New()}
	err := db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := checkGeneration(ctx, tx, r); err != nil {
			return err
		}
		failpoint.Hit("pg.claim")
		at, _, err := scanOffset(tx.QueryRow(ctx, claimOffset.In(r.Generation), r.Partition, p.token, r.Label))
		p.stand(at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claiming partition %d of generation %d: %w", r.Partition, r.Generation, err)
	}
	return p, nil
}

func checkGeneration(ctx context.Context, tx pgx.Tx, r ClaimRequest) error {
	if r.Partition < 0 || r.Partition >= r.Partitions {
		return fmt.Errorf("there are %d: %w (the number is fixed; restore the topic or rebuild)", r.Partitions,
			ErrSchema)
	}
	var layout, partitions int
	err := tx.QueryRow(ctx, lockGeneration.SQL(), r.Generation).Scan(&layout, &partitions)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("generation %d does not exist: %w (create it first)", r.Generation, ErrSchema)
	case err != nil:
		return err
	case layout != stateLayout:
		return fmt.Errorf("it has state layout %d, this build needs %d: %w (fill a new generation)", layout,
			stateLayout, ErrSchema)
	case partitions == 0:
		_, err = tx.Exec(ctx, setPartitions.SQL(), r.Generation, r.Partitions)
		return err
	case partitions != r.Partitions:
		return fmt.Errorf("it was filled from a log topic of %d partitions, now there are %d: %w (the number is "+
			"fixed; restore the topic or rebuild)",
			partitions, r.Partitions, ErrSchema)
	}
	return nil
}

// stand takes in where the database says that the partition stands. That may be less far than it was: a standby that
// lacked the last commits was promoted, or a disk lost them. Their revisions must not be given again: readers who have
// seen them would not be told of what other blocks do under them. So revisions go on from the time in milliseconds,
// which is beyond any count of commits.
func (p *Partition) stand(at Offset) { p.offset, p.leastRev = at, time.Now().UnixMilli() }

// nextRev returns the revision of the next transaction that touches rows.
func (p *Partition) nextRev() int64 { return max(p.offset.Rev+1, p.leastRev) }

// Offset is where the partition stands, as of the last successful call.
func (p *Partition) Offset() Offset { return p.offset }

// Refresh reads where the partition stands, for a caller who does not know what became of a commit.
func (p *Partition) Refresh(ctx context.Context) error {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	tx, err := p.db.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("asking where partition %d stands: %w", p.offset.Partition, err)
	}
	found, err := p.lock(ctx, tx)
	// Nothing was written: what the lock has shown is true however this transaction ends.
	_ = tx.Rollback(context.WithoutCancel(ctx))
	if err == nil {
		p.stand(found)
	}
	return err
}

// Kept returns the blocks that the partition remembers, ascending: the tip, what can be undone, and what can be gone
// back to.
func (p *Partition) Kept(ctx context.Context) ([]chain.BlockRef, error) {
	return List(ctx, p.db, fmt.Sprintf("reading the kept blocks of partition %d", p.offset.Partition), scanBlock,
		selectKept.In(p.generation), p.offset.Partition)
}

var scanBlock = Columns(func(b *chain.BlockRef) []any {
	return []any{&b.Number, Fixed(b.Hash[:]), Fixed(b.Parent[:]), &b.TimeMs}
})

// sameBlock compares what identifies a block within its chain.
func sameBlock(a, b chain.BlockRef) bool { return a.Number == b.Number && a.Hash == b.Hash }

var (
	selectDeadLetter = Register("dead letter",
		`SELECT coalesce(dead_letter, -1) FROM {state}.stream_offset WHERE part = $1`)
	updateDeadLetter = Register("note dead letter",
		`UPDATE {state}.stream_offset SET dead_letter = $2 WHERE part = $1 AND owner = $3`)
)

// DeadLetter returns the offset of the last record of the partition that was sent to the dead letter topic, or -1.
func (p *Partition) DeadLetter(ctx context.Context) (offset int64, err error) {
	return One(ctx, p.db, fmt.Sprintf("asking for dead letters of partition %d", p.offset.Partition),
		pgx.RowTo[int64], selectDeadLetter.In(p.generation), p.offset.Partition)
}

// NoteDeadLetter remembers that a record was sent to the dead letter topic.
func (p *Partition) NoteDeadLetter(ctx context.Context, offset int64) error {
	doing := fmt.Sprintf("noting a dead letter of partition %d", p.offset.Partition)
	rows, err := p.db.Run(ctx, doing, updateDeadLetter.In(p.generation), p.offset.Partition, offset, p.token)
	if err == nil && rows == 0 {
		err = fmt.Errorf("%s: %w", doing, errNotOwner)
	}
	return err
}
