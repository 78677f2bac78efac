package statevm

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// maxRecords is the most records that one transaction applies when behind.
const maxRecords = 10_000

// follower brings one partition's rows up to date and keeps them so, for the time of one claim.
type follower struct {
	log     zerolog.Logger
	metrics *partitionMetrics
	decoder decoder
	own     func(key chain.Hash) bool // see assembler
	limit   int
	open    func(offset int64) *bus.Reader
	bounds  func(ctx context.Context) (first, end int64, err error)
	ready   func(reason string) // empty = all is well

	partition *pg.Partition
	intake    *intake // nil before the first begin
	branch    branch
	rows      *workingSet
	pending   []step // block parts and finalized blocks not yet committed, in order
}

// run follows until the partition halts, another process takes it, or ctx ends. Everything else is waited out.
func (f *follower) run(ctx context.Context) error {
	defer f.rest()
	b := retry.New(retry.Policy{Initial: 50 * time.Millisecond, Max: 2 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) {
			f.ready(err.Error())
			f.log.Warn().Err(err).Msg("trying again")
		}})
	for b.Next(ctx) {
		began := f.partition.Offset().Next
		err := f.begin(ctx)
		for err == nil {
			err = f.advance(ctx)
		}
		if contradicts(err) {
			if forbidding := f.forbid(ctx, err); forbidding != nil {
				err = forbidding // and once that works, the record says the same again
			}
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

// begin takes everything from the database: where the partition stands, the blocks it can still undo, and the rows it
// holds in memory.
func (f *follower) begin(ctx context.Context) error {
	f.rest()
	if err := f.partition.Refresh(ctx); err != nil {
		return fmt.Errorf("reading the offset: %w", err)
	}
	if err := f.compare(ctx); err != nil {
		return err
	}
	kept, err := f.partition.Kept(ctx)
	if err != nil {
		return err
	}
	if err := f.reload(ctx); err != nil {
		return err
	}
	at := f.partition.Offset()
	f.branch, f.pending = branch{kept: kept, finalized: at.Finalized}, nil
	reader := f.open(at.Next).Watch(at.Mark)
	f.intake = startIntake(ctx, reader, assembler{claim: wire.Claim(at.Epoch), own: f.own}, f.decoder, f.limit)
	f.log.Info().Int64("offset", at.Next).Uint64("block", at.Tip.Number).Uint64("epoch", at.Epoch).Msg("following")
	f.stands()
	failpoint.Hit("statevm.claimed")
	return nil
}

// rest ends the reading ahead.
func (f *follower) rest() {
	if f.intake != nil {
		f.intake.close()
		f.intake = nil
	}
}

// reload takes the resident rows from the database.
func (f *follower) reload(ctx context.Context) error {
	resident, err := f.partition.Resident(ctx)
	if err != nil {
		return err
	}
	f.rows = newWorkingSet(resident)
	return nil
}

// advance takes what has been read, waiting for at least one record, and commits all that is complete.
func (f *follower) advance(ctx context.Context) error {
	read := f.intake.take(ctx, f.limit)
	var last step
	for _, s := range read.steps {
		if err := f.judge(ctx, s); err != nil {
			return f.stopAt(ctx, err)
		}
		last = s
	}
	if read.err != nil {
		return f.stopAt(ctx, read.err)
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
	commit, halted := f.fold(ctx, pending)
	if halted != nil && !halts(halted) {
		return halted
	}
	if halted == nil {
		commit.Next, commit.Mark, commit.Epoch = last.next, last.mark, last.epoch
	}
	failpoint.Hit("statevm.folded")
	if commit.Next > f.partition.Offset().Next {
		if err := f.partition.Commit(ctx, commit); err != nil {
			return err
		}
		failpoint.Hit("statevm.committed")
		f.stands()
		f.reportDifferences()
	}
	return halted
}

// fold applies the pending steps in memory. When one of them halts, what it returns is everything before, with the
// offset and the epoch as they were then: a later epoch would make the halted records look like those of a replaced
// scanner.
func (f *follower) fold(ctx context.Context, pending []step) (commit pg.Commit, err error) {
	if len(pending) == 0 {
		return commit, nil
	}
	if err := f.fetch(ctx, touches(pending)); err != nil {
		return commit, err
	}
	for _, s := range pending {
		if s.finalized != nil {
			commit.Finalized = *s.finalized
		} else {
			block, err := f.rows.fold(s.part)
			if err != nil {
				return commit, err
			}
			block.Source = pg.Place{Next: s.next, Mark: s.mark}
			commit.Blocks = append(commit.Blocks, block)
		}
		commit.Next, commit.Mark, commit.Epoch = s.next, s.mark, s.epoch
	}
	f.metrics.counted(pending)
	return commit, nil
}

func (f *follower) fetch(ctx context.Context, keys []perp.RowKey) error {
	if len(keys) == 0 {
		f.rows.fetched(nil, nil)
		return nil
	}
	found, err := f.partition.Rows(ctx, keys)
	if err != nil {
		return err
	}
	f.rows.fetched(keys, found)
	return nil
}

// stands reports where the partition is, and whether anybody may act on it.
func (f *follower) stands() {
	at := f.partition.Offset()
	f.metrics.stands(at)
	f.metrics.stuck(at.Halted != "")
	switch {
	case at.Halted != "":
		f.ready("halted: " + at.Halted)
	case at.Next > 0 && at.Epoch == 0:
		f.ready(fmt.Sprintf("the log topic has no claim up to offset %d: it was made anew beneath a scanner, which "+
			"has to claim it again", at.Next))
	default:
		f.ready("")
	}
}
