package statevm

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// follower brings one partition's rows up to date and keeps them so, for the time of one claim.
type follower struct {
	log       zerolog.Logger
	metrics   *partitionMetrics
	decoder   Decoder
	limit     int
	open      func(offset int64) *bus.Reader
	committed func(next int64)
	ready     func(reason string) // empty = all is well

	partition *pg.Partition
	reader    *bus.Reader
	records   assembler
	branch    branch
	pending   []step // blocks not yet committed, in order
}

// run follows until the partition halts, another process takes it, or ctx ends. Everything else is waited out.
func (f *follower) run(ctx context.Context) error {
	b := retry.New(retry.Policy{Initial: 50 * time.Millisecond, Max: 2 * time.Second, OnRetry: func(_ int, err error, _ time.Duration) {
		f.ready(err.Error())
		f.log.Warn().Err(err).Msg("trying again")
	}})
	for b.Next(ctx) {
		began := f.partition.Offset().Next
		err := f.begin(ctx)
		for err == nil {
			err = f.advance(ctx)
		}
		if halts(err) || pg.NotOwner(err) {
			return err
		}
		if f.partition.Offset().Next != began {
			b.Reset()
		}
		b.Failed(err)
	}
	return b.Err(ctx)
}

// begin takes everything from the database: where the partition stands, and the blocks it can still undo.
func (f *follower) begin(ctx context.Context) error {
	if err := f.partition.Refresh(ctx); err != nil {
		return fmt.Errorf("reading the offset: %w", err)
	}
	kept, err := f.partition.Kept(ctx)
	if err != nil {
		return err
	}
	at := f.partition.Offset()
	f.records, f.branch, f.pending = assembler{epoch: at.Epoch}, branch{kept: kept, finalized: at.Finalized}, nil
	f.reader = f.open(at.Next)
	f.metrics.stands(at)
	f.log.Info().Int64("offset", at.Next).Uint64("block", at.Tip.Number).Uint64("epoch", at.Epoch).Msg("following")
	f.ready("")
	return nil
}

// advance reads what there is, waiting for at least one record, and commits all that is complete.
func (f *follower) advance(ctx context.Context) error {
	records, err := f.reader.NextBatch(ctx, f.limit)
	if err != nil {
		return err
	}
	var last step
	for _, r := range records {
		s, complete, err := f.records.take(r)
		if err == nil && complete {
			err = f.judge(ctx, s)
		}
		if err != nil {
			return f.stopAt(ctx, err)
		}
		if complete {
			last = s
		}
	}
	return f.flush(ctx, last)
}

// stopAt commits what came before a record that halts the partition.
func (f *follower) stopAt(ctx context.Context, err error) error {
	if !halts(err) {
		return err
	}
	if flushing := f.flushPending(ctx); flushing != nil {
		return flushing
	}
	return err
}

// judge does with a step what the rule says: blocks wait for the next flush, a reorg takes them along.
func (f *follower) judge(ctx context.Context, s step) error {
	switch {
	case s.block != nil:
		v, err := f.branch.block(s.block.applied())
		if err != nil {
			return err
		}
		if v == apply {
			f.branch.extend(s.block.applied())
			f.pending = append(f.pending, s)
		}
	case s.reorg != nil:
		return f.undo(ctx, s)
	case s.finalized != nil:
		return f.finalize(s)
	}
	return nil
}

func (f *follower) undo(ctx context.Context, s step) error {
	v, err := f.branch.reorg(*s.reorg)
	if err != nil || v == skip {
		return err
	}
	if err := f.flushPending(ctx); err != nil {
		return err
	}
	from, to := f.partition.Offset().Tip, s.reorg.Ancestor
	if err := f.partition.Undo(ctx, pg.Rewind{Next: s.next, Epoch: s.epoch, Ancestor: to}); err != nil {
		return fmt.Errorf("undoing blocks %d to %d: %w", to.Number+1, from.Number, err)
	}
	f.branch.rewind(to)
	f.metrics.undone(from.Number - to.Number)
	f.log.Warn().Uint64("from", from.Number).Stringer("old_tip", from.Hash).Uint64("to", to.Number).Stringer("ancestor", to.Hash).Msg("blocks undone")
	f.noteCommit()
	return nil
}

func (f *follower) finalize(s step) error {
	v, err := f.branch.finalize(*s.finalized)
	if err != nil || v == skip {
		return err
	}
	f.branch.finalized = *s.finalized
	f.pending = append(f.pending, s)
	return nil
}

// flushPending commits up to the last pending step.
func (f *follower) flushPending(ctx context.Context) error {
	if len(f.pending) == 0 {
		return nil
	}
	return f.flush(ctx, f.pending[len(f.pending)-1])
}

// flush applies the pending steps and commits them, together with the offset and epoch after the last complete one.
func (f *follower) flush(ctx context.Context, last step) error {
	pending := f.pending
	f.pending = nil
	began := time.Now()
	commit, halted := f.fold(ctx, pending)
	if halted != nil && !halts(halted) {
		return halted
	}
	if halted == nil {
		commit.Next, commit.Epoch = last.next, last.epoch
	}
	if commit.Next > f.partition.Offset().Next {
		if err := f.partition.Commit(ctx, commit); err != nil {
			return err
		}
		f.noteCommit()
		f.metrics.applied(len(commit.Blocks), time.Since(began))
	}
	return halted
}

// fold decodes and applies the pending steps in memory. When one of them halts, what it returns is everything before, with the offset and the
// epoch as they were then: a later epoch would make the halted records look like those of a replaced scanner.
func (f *follower) fold(ctx context.Context, pending []step) (pg.Commit, error) {
	var commit pg.Commit
	decoded, halted := f.decode(pending)
	keys := touches(decoded)
	found, err := f.partition.Rows(ctx, keys)
	if err != nil {
		return commit, err
	}
	rows := newWorkingSet(keys, found)
	for i, happenings := range decoded {
		s := pending[i]
		if s.finalized != nil {
			commit.Finalized = *s.finalized
		} else {
			changes, err := rows.fold(s.block.Block.Number, happenings)
			if err != nil {
				return commit, err
			}
			commit.Blocks = append(commit.Blocks, pg.AppliedBlock{Block: s.block.applied(), Changes: changes})
			f.metrics.counted(happenings)
		}
		commit.Next, commit.Epoch = s.next, s.epoch
	}
	return commit, halted
}

// decode returns the happenings of every step before the first that cannot be decoded.
func (f *follower) decode(pending []step) ([][]happening, error) {
	var decoded [][]happening
	for _, s := range pending {
		var happenings []happening
		if s.block != nil {
			var err error
			if happenings, err = s.block.happenings(f.decoder); err != nil {
				return decoded, err
			}
		}
		decoded = append(decoded, happenings)
	}
	return decoded, nil
}

func (f *follower) noteCommit() {
	at := f.partition.Offset()
	f.metrics.stands(at)
	f.committed(at.Next)
	f.ready("")
}
