package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
)

// Offset is where one partition stands: everything up to and including Tip is in the rows.
type Offset struct {
	Partition int
	// Next is the offset of the first record not yet applied.
	Next int64
	// Mark is that of the record before Next; zero = not known.
	Mark Mark
	// Epoch is the scanner's claim in force; records of another epoch are to be dropped. 0 = no claim was read yet.
	Epoch uint64
	// Tip is the last block applied; its Hash is zero until there is one.
	Tip chain.BlockRef
	// Finalized is the highest finalized block that is known; its Hash is zero until there is one. Tip may be below it
	// where the topic has lost its end.
	Finalized chain.BlockRef
	// Halted is the reason why nobody may act on the state until the operator has looked; empty when all is well.
	Halted string
	// Rev is raised by every transaction that touches rows, and stamped on them.
	Rev int64
}

const offsetColumns = `part, next_offset, mark, epoch, rev, owner, block, hash, parent, time_ms, finalized,
	 finalized_hash, finalized_parent, finalized_ms, halted`

var (
	lockOffset = Register("lock offset",
		`SELECT `+offsetColumns+` FROM {state}.stream_offset WHERE part = $1 FOR UPDATE`)
	moveOffset = Register("move offset",
		`UPDATE {state}.stream_offset SET next_offset = $2, mark = $3, epoch = $4, rev = $5, block = $6, hash = $7,
		parent = $8, time_ms = $9, finalized = $10, finalized_hash = $11, finalized_parent = $12, finalized_ms = $13,
		halted = $14, updated_at = clock_timestamp() WHERE part = $1`)
)

// scanOffset reads offsetColumns.
func scanOffset(row pgx.Row) (o Offset, owner uuid.UUID, err error) {
	var number, timeMs, finalized, finalizedMs *uint64
	var mark, hash, parent, finalizedHash, finalizedParent []byte
	err = row.Scan(&o.Partition, &o.Next, &mark, &o.Epoch, &o.Rev, &owner, &number, &hash, &parent, &timeMs,
		&finalized, &finalizedHash, &finalizedParent, &finalizedMs, &o.Halted)
	if err != nil {
		return Offset{}, uuid.UUID{}, err
	}
	o.Mark = markOf(mark)
	if number != nil {
		o.Tip = blockRef(*number, hash, parent, *timeMs)
	}
	if finalized != nil {
		o.Finalized = blockRef(*finalized, finalizedHash, finalizedParent, *finalizedMs)
	}
	return o, owner, nil
}

func collectOffset(row pgx.CollectableRow) (Offset, error) {
	o, _, err := scanOffset(row)
	return o, err
}

func blockRef(number uint64, hash, parent []byte, timeMs uint64) (b chain.BlockRef) {
	b.Number, b.TimeMs = number, timeMs
	copy(b.Hash[:], hash)
	copy(b.Parent[:], parent)
	return b
}

// arguments are those of moveOffset.
func (o Offset) arguments() []any {
	args := []any{o.Partition, o.Next, o.Mark.stored(), o.Epoch, o.Rev}
	if o.Tip.Hash.IsZero() {
		args = append(args, nil, nil, nil, nil)
	} else {
		args = append(args, o.Tip.Number, o.Tip.Hash[:], o.Tip.Parent[:], o.Tip.TimeMs)
	}
	if o.Finalized.Hash.IsZero() {
		return append(args, nil, nil, nil, nil, o.Halted)
	}
	return append(args, o.Finalized.Number, o.Finalized.Hash[:], o.Finalized.Parent[:], o.Finalized.TimeMs, o.Halted)
}

// errNotOwner is what a former owner meets.
var errNotOwner = errors.New("another process has claimed the partition")

// NotOwner reports whether an error says that another process has claimed the partition since. Nothing was written, and
// nothing more can be through this claim.
func NotOwner(err error) bool { return errors.Is(err, errNotOwner) }

// lock takes the partition's offset row until the transaction ends and returns it. It waits for whoever holds
// the row, be it a connection that was lost in the middle of its commit.
func (p *Partition) lock(ctx context.Context, tx pgx.Tx) (Offset, error) {
	found, owner, err := scanOffset(tx.QueryRow(ctx, lockOffset.In(p.generation), p.offset.Partition))
	switch {
	case err != nil:
		return Offset{}, fmt.Errorf("locking the offset of partition %d: %w", p.offset.Partition, err)
	case owner != p.token:
		return Offset{}, fmt.Errorf("partition %d of generation %d: %w", p.offset.Partition, p.generation, errNotOwner)
	}
	return found, nil
}
