// Package evidence reads the facts by which keepers take turns: the jobs that planners have published, from the job
// topic, and the executions on the chain, from the log topic.
//
// Guaranteed: an execution is reported once all partitions have its block, and none of a block that left the chain
// before that; it is reported once for a block (number and hash), also where [Follow] reads the topic again; all jobs
// of the past are reported before anything of the chain. Not guaranteed: that a block is final. An execution that was
// reported is not taken back when its branch leaves the chain later.
package evidence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/wire"
)

// hindsight is how far back the topics are read at the start: longer than a job lives, and than a suspicion is
// remembered.
const hindsight = 15 * time.Minute

// Unreadable takes a record that nobody can read, and why. The owner of its partition sets it aside.
type Unreadable func(topic string, r bus.Record, why error)

// Observer receives the evidence. Its methods are called by several goroutines at once.
type Observer interface {
	// Published takes a job, as often as planners publish it.
	Published(j job.Job)
	// Executed takes what the chain shows, in its order.
	Executed(found []execution.Execution)
	// Read takes the time (ms) of the block up to which all partitions have been read. It is not called before all of
	// the past was.
	Read(blockMs uint64)
}

// Reader reads every job this keeper's planners have published, and everything that was executed on the chain. It
// follows all partitions of both topics, whichever of them this process works on, because whose turn a job is depends
// on all jobs.
type Reader struct {
	client     *bus.Client
	cfg        wire.Config
	observer   Observer
	unreadable Unreadable

	mu    sync.Mutex
	fold  *execution.Fold
	tips  []uint64 // by partition of the log topic: the time (ms) of its newest block; 0 = none yet
	left  int      // partitions of the log topic whose past has not been read
	feeds []feed
	// reported is what this reader or, see Follow, one before it has reported.
	reported *reportedSet
	// standing is called whenever it is reported up to when all partitions have been read.
	standing func()
}

// NewReader makes a reader that reports to an observer. The decoder is the venue's; unreadable takes the records of the
// job topic that hold no job.
func NewReader(client *bus.Client, cfg wire.Config, decoder execution.Decoder, observer Observer,
	unreadable Unreadable) *Reader {
	return &Reader{
		client: client, cfg: cfg, observer: observer, unreadable: unreadable,
		fold: execution.NewFold(decoder, cfg.LogPartitions), tips: make([]uint64, cfg.LogPartitions),
		left: cfg.LogPartitions, feeds: make([]feed, cfg.LogPartitions), reported: newReportedSet(),
		standing: func() {},
	}
}

// Run reads until ctx ends, or until it meets something in the log topic that it does not understand: the evidence then
// stands still. What it does not understand of a block that nobody has proven it passes over: one endpoint may have
// left a log out, and the block comes again when that is known. So it does with a range, which never comes again, and
// lies deeper than anything is taken back. All jobs of the past are read before anything of the chain: what was
// executed is an execution of jobs that were there.
func (e *Reader) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	past := make(chan struct{}, e.cfg.JobPartitions)
	for partition := range e.cfg.JobPartitions {
		group.Go(func() error {
			return e.follow(ctx, wire.JobTopic(e.cfg.ChainID), partition, sync.OnceFunc(func() { past <- struct{}{} }),
				e.jobRecord)
		})
	}
	group.Go(func() error {
		for range e.cfg.JobPartitions {
			select {
			case <-past:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for partition := range e.cfg.LogPartitions {
			group.Go(func() error {
				return e.follow(ctx, wire.LogTopic(e.cfg.ChainID), partition, sync.OnceFunc(e.caughtUp), e.logRecord)
			})
		}
		return nil
	})
	return group.Wait()
}

// follow reads a partition from a while back, and calls reached when it has come to where its end was.
func (e *Reader) follow(ctx context.Context, topic string, partition int, reached func(),
	take func(bus.Record) error) error {
	offset, end, err := e.client.OffsetBack(ctx, topic, partition, hindsight)
	if err != nil {
		return fmt.Errorf("looking for the last %s of %s/%d: %w", hindsight, topic, partition, err)
	}
	reader := e.client.Reader(topic, partition, offset)
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

// jobRecord takes a record of the job topic. One that nobody can read is passed over: it is no evidence.
func (e *Reader) jobRecord(r bus.Record) error {
	if err := e.readJob(r); err != nil {
		e.unreadable(wire.JobTopic(e.cfg.ChainID), r, err)
	}
	return nil
}

func (e *Reader) readJob(r bus.Record) error {
	j, err := wire.DecodeJob(r)
	if err != nil {
		return err
	}
	e.observer.Published(j)
	return nil
}

// caughtUp notes that the past of one more partition of the log topic has been read.
func (e *Reader) caughtUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left--
	e.stands()
}

// stands returns up to when all partitions have been read. The lock is held.
func (e *Reader) stands() {
	slowest := e.tips[0]
	for _, tip := range e.tips {
		slowest = min(slowest, tip)
	}
	if e.left == 0 && slowest > 0 {
		e.observer.Read(slowest)
		e.standing()
	}
}

// logRecord takes a record of the log topic.
func (e *Reader) logRecord(r bus.Record) error {
	m, meta, err := wire.Decode(r)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &e.feeds[r.Partition]
	if whole := f.take(m, meta.Epoch, r.Offset); !whole {
		return nil
	}
	var found []execution.Execution
	switch m := m.(type) {
	case wire.BlockEnd:
		share := f.close()
		share.Unproven = !m.Verified
		found, err = e.fold.Block(r.Partition, m.Block, m.Attempt, share)
		e.tips[r.Partition] = m.Block.TimeMs
	case wire.RangeEnd:
		share := f.close()
		share.Unproven = !m.Verified
		found, err = e.fold.Range(r.Partition, m.Before, m.Last, m.Blocks, share)
		e.tips[r.Partition] = m.Last.TimeMs
	case wire.Reorg:
		e.fold.Undo(r.Partition, m.Reorg)
	}
	if err != nil {
		return err
	}
	e.observer.Executed(e.reported.add(found))
	e.stands()
	return nil
}

// feed gathers the records of one partition of the log topic up to the end of their block.
type feed struct {
	epoch uint64
	begun bool // the beginning of what is gathered was read
	share execution.Share
}

// take takes a message and reports whether it is one that concerns whole blocks and can be heeded. What a scanner that
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
