package sender

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/wire"
)

// hindsight is how far back the topics are read at the start: longer than a job lives, and than a suspicion is
// remembered.
const hindsight = 15 * time.Minute

// observer reads what the turns rest on: every job this keeper's planners have said, and everything that was executed
// on the chain. It follows all partitions of both topics, whichever of them this process works on, because whose turn a
// job is depends on all jobs.
type observer struct {
	client *bus.Client
	cfg    wire.Config
	turns  *turns
	// unreadable takes job records that nobody can read; the owner of their partition sets them aside.
	unreadable *unreadable

	mu    sync.Mutex
	fold  *execution.Fold
	tips  []uint64 // by partition of the log topic: the time (ms) of its newest block; 0 = none yet
	left  int      // partitions of the log topic whose past has not been read
	feeds []feed
}

// observe reads until ctx ends. Where it meets something that it does not understand it stops and says so; the
// freshness gate then closes, because the evidence falls behind, and what is in flight is followed all the same.
func (s *Sender) observe(ctx context.Context) error {
	if !s.cfg.Tier.Enabled {
		return nil
	}
	keeper := s.cfg.Keeper
	o := &observer{
		client: s.client, cfg: keeper, turns: s.turns, unreadable: s.unreadable,
		fold: execution.NewFold(gmx.NewDecoder(s.cfg.Venue.EventEmitter), keeper.LogPartitions),
		tips: make([]uint64, keeper.LogPartitions), left: keeper.LogPartitions,
		feeds: make([]feed, keeper.LogPartitions),
	}
	err := o.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.log.Error().Err(err).Msg("the evidence of the tiers is no longer read: nothing is sent until this process is " +
		"started again")
	s.notices.set("evidence", err.Error())
	<-ctx.Done()
	return context.Cause(ctx)
}

// run reads all jobs of the past before anything of the chain: what was executed is an execution of jobs that were
// there.
func (o *observer) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	past := make(chan struct{}, o.cfg.JobPartitions)
	for partition := range o.cfg.JobPartitions {
		group.Go(func() error {
			return o.follow(ctx, wire.JobTopic(o.cfg.ChainID), partition, sync.OnceFunc(func() { past <- struct{}{} }),
				o.job)
		})
	}
	group.Go(func() error {
		for range o.cfg.JobPartitions {
			select {
			case <-past:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for partition := range o.cfg.LogPartitions {
			group.Go(func() error {
				return o.follow(ctx, wire.LogTopic(o.cfg.ChainID), partition, sync.OnceFunc(o.caughtUp), o.seen)
			})
		}
		return nil
	})
	return group.Wait()
}

// follow reads a partition from a while back and tells when it has come to where its end was.
func (o *observer) follow(ctx context.Context, topic string, partition int, reached func(),
	take func(bus.Record) error) error {
	offset, end, err := o.client.OffsetBack(ctx, topic, partition, hindsight)
	if err != nil {
		return fmt.Errorf("looking for the last %s of %s/%d: %w", hindsight, topic, partition, err)
	}
	reader := o.client.Reader(topic, partition, offset)
	for {
		if reader.Offset() >= end {
			reached()
		}
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return fmt.Errorf("reading evidence: %w", err)
		}
		for _, r := range records {
			if err := take(r); err != nil {
				return fmt.Errorf("reading evidence at %s/%d, offset %d: %w", topic, partition, r.Offset, err)
			}
		}
	}
}

// job takes a record of the job topic. One that nobody can read is passed over: it is no evidence.
func (o *observer) job(r bus.Record) error {
	if err := o.said(r); err != nil {
		o.unreadable.report(damaged{wire.JobTopic(o.cfg.ChainID), r, err})
	}
	return nil
}

func (o *observer) said(r bus.Record) error {
	j, err := wire.DecodeJob(r)
	if err != nil {
		return err
	}
	o.turns.heard(j)
	return nil
}

// caughtUp notes that the past of one more partition of the log topic has been read.
func (o *observer) caughtUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left--
	o.stands()
}

// stands tells up to when all partitions have been read. The lock is held.
func (o *observer) stands() {
	slowest := o.tips[0]
	for _, tip := range o.tips {
		slowest = min(slowest, tip)
	}
	if o.left == 0 && slowest > 0 {
		o.turns.read(slowest)
	}
}

// seen takes a record of the log topic.
func (o *observer) seen(r bus.Record) error {
	m, meta, err := wire.Decode(r)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f := &o.feeds[r.Partition]
	if whole := f.take(m, meta.Epoch, r.Offset); !whole {
		return nil
	}
	var found []execution.Execution
	switch m := m.(type) {
	case wire.BlockEnd:
		found, err = o.fold.Block(r.Partition, m.Block, m.Attempt, f.close())
		o.tips[r.Partition] = m.Block.TimeMs
	case wire.RangeEnd:
		found, err = o.fold.Range(r.Partition, m.Before, m.Last, m.Blocks, f.close())
		o.tips[r.Partition] = m.Last.TimeMs
	case wire.Reorg:
		o.fold.Undo(r.Partition, m.Reorg)
	}
	if err != nil {
		return err
	}
	o.turns.executed(found)
	o.stands()
	return nil
}

// feed gathers the records of one partition of the log topic up to the end of their block.
type feed struct {
	epoch uint64
	begun bool // the beginning of what is gathered was read
	share execution.Share
}

// take takes a message and tells whether it is one that concerns whole blocks and can be heeded. What a scanner that
// had been replaced has written is left out, and so is the rest of a block in whose middle the reading began.
func (f *feed) take(m wire.Message, epoch uint64, offset int64) (whole bool) {
	if claim, is := m.(wire.Epoch); is {
		epoch = max(epoch, claim.Number)
	}
	if epoch < f.epoch {
		return false
	}
	f.epoch = epoch
	if offset == 0 {
		f.begun = true
	}
	switch m := m.(type) {
	case wire.Log:
		f.share.Logs = append(f.share.Logs, m.Log)
		return false
	case wire.Tx:
		f.share.Txs = append(f.share.Txs, m.Tx)
		return false
	case wire.Param, wire.Audit, wire.Part:
		return false
	case wire.Epoch:
		f.begun, f.share = true, execution.Share{} // parts of a block whose writer ended before its last are void
		return true
	}
	if !f.begun {
		f.begun, f.share = true, execution.Share{}
		return false
	}
	return true
}

// close returns what was gathered.
func (f *feed) close() execution.Share {
	defer func() { f.share = execution.Share{} }()
	return f.share
}
