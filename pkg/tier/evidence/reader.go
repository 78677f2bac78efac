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
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/tier/execution"
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
	hindsight  time.Duration
	// certain looks for the claim in force, which may stand a long way back. Else the first epoch is taken for it.
	certain bool

	mu    sync.Mutex
	fold  *execution.Fold
	tips  []uint64 // by partition of the log topic: the time (ms) of its newest block; 0 = none yet
	left  int      // partitions of the log topic whose past has not been read
	feeds []feed
	// reported is what this reader or, see Follow, one before it has reported.
	reported *reportedSet
	// onCaughtUp is called whenever it is reported up to when all partitions have been read.
	onCaughtUp func()
}

// NewReader makes a reader that reports to an observer. The decoder is the venue's; unreadable takes the records of the
// job topic that hold no job.
func NewReader(client *bus.Client, cfg wire.Config, decoder execution.Decoder, observer Observer,
	unreadable Unreadable) *Reader {
	return &Reader{
		client: client, cfg: cfg, observer: observer, unreadable: unreadable, hindsight: hindsight,
		fold: execution.NewFold(decoder, cfg.LogPartitions), tips: make([]uint64, cfg.LogPartitions),
		left: cfg.LogPartitions, feeds: make([]feed, cfg.LogPartitions), reported: newReportedSet(),
		onCaughtUp: func() {},
	}
}

// Run reads until ctx ends, or until it meets something in the log topic that it does not understand: the evidence then
// stands still. All jobs of the past are read before anything of the chain: what was executed is an execution of jobs
// that were there.
func (e *Reader) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	past := make(chan struct{}, e.cfg.JobPartitions)
	for partition := range e.cfg.JobPartitions {
		group.Go(func() error {
			return e.follow(ctx, wire.JobTopic(e.cfg.ChainID), partition, func(int64) error { return nil },
				sync.OnceFunc(func() { past <- struct{}{} }), e.jobRecord)
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
				begin := func(offset int64) error { return e.begin(ctx, partition, offset) }
				return e.follow(ctx, wire.LogTopic(e.cfg.ChainID), partition, begin, sync.OnceFunc(e.caughtUp),
					e.logRecord)
			})
		}
		return nil
	})
	return group.Wait()
}

// begin learns the claim in force at an offset of a partition of the log topic, if that was ambiguous.
func (e *Reader) begin(ctx context.Context, partition int, offset int64) error {
	claim, topic := wire.Claim(0), wire.LogTopic(e.cfg.ChainID)
	for back, from := e.hindsight+time.Minute, offset; e.certain && claim == 0 && from > 0; back *= 4 {
		first, _, err := e.client.Bounds(ctx, topic, partition)
		if err == nil {
			from, _, err = e.client.OffsetBack(ctx, topic, partition, back)
		}
		if err != nil {
			return fmt.Errorf("looking for the last claim of %s/%d: %w", topic, partition, err)
		}
		for r, err := range e.client.Scan(ctx, topic, partition, from) {
			if err != nil {
				return fmt.Errorf("looking for the last claim of %s/%d: %w", topic, partition, err)
			}
			if r.Offset >= offset {
				break
			}
			m, meta, err := wire.Decode(r)
			if _, claims := m.(wire.Epoch); err == nil && claims {
				claim.Counts(m, meta)
			}
		}
		if from <= first {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.feeds[partition] = feed{claim: claim, certain: e.certain || offset == 0, begun: offset == 0}
	return nil
}

// follow reads a partition from a while back, and calls reached when it has come to where its end was.
func (e *Reader) follow(ctx context.Context, topic string, partition int, begin func(offset int64) error,
	reached func(), take func(bus.Record) error) error {
	offset, end, err := e.client.OffsetBack(ctx, topic, partition, e.hindsight)
	if err == nil {
		err = begin(offset)
	}
	if err != nil {
		return fmt.Errorf("looking for the last %s of %s/%d: %w", e.hindsight, topic, partition, err)
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
	e.reportRead()
}

// reportRead reports up to when all partitions have been read. The lock is held.
func (e *Reader) reportRead() {
	slowest := e.tips[0]
	for _, tip := range e.tips {
		slowest = min(slowest, tip)
	}
	if e.left == 0 && slowest > 0 {
		e.observer.Read(slowest)
		e.onCaughtUp()
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
	if whole, err := f.take(m, meta); !whole {
		return err
	}
	var found []execution.Execution
	switch m := m.(type) {
	case wire.BlockEnd:
		found, err = e.fold.Block(r.Partition, m.Block, f.close())
		e.tips[r.Partition] = m.Block.TimeMs
	case wire.RangeEnd:
		found, err = e.fold.Range(r.Partition, m.Before, m.Last, m.Blocks, f.close())
		e.tips[r.Partition] = m.Last.TimeMs
	case wire.Reorg:
		e.fold.Undo(r.Partition, m.Reorg)
	}
	if err != nil {
		return err
	}
	e.observer.Executed(e.reported.add(found))
	e.reportRead()
	return nil
}

// feed gathers the records of one partition of the log topic up to the end of their block.
type feed struct {
	claim   wire.Claim
	certain bool // that it is the claim in force, and no guess
	begun   bool // the beginning of what is gathered was read
	share   execution.Share
}

// errAmbiguousEpoch ends a reading that began behind the claim in force, and has met a second epoch: it cannot tell the
// one of a scanner that was replaced from one that was never claimed.
var errAmbiguousEpoch = errors.New("there are records of two epochs, and the claim in force is older than they")

// take takes a message and reports whether it is one that concerns whole blocks and can be heeded. What does not count
// by the claim in force is left out, and so is the rest of a block in whose middle the reading began.
func (f *feed) take(m wire.Message, meta wire.Meta) (whole bool, err error) {
	if _, claims := m.(wire.Epoch); !claims && !f.certain {
		if f.claim == 0 {
			f.claim = wire.Claim(meta.Epoch)
		}
		if uint64(f.claim) != meta.Epoch {
			return false, errAmbiguousEpoch
		}
	}
	if !f.claim.Counts(m, meta) {
		return false, nil
	}
	switch m := m.(type) {
	case wire.Log:
		f.share.Logs = append(f.share.Logs, m.Log)
		return false, nil
	case wire.Tx:
		f.share.Txs = append(f.share.Txs, m.Tx)
		return false, nil
	case wire.Param, wire.Audit, wire.Part:
		return false, nil
	case wire.Epoch:
		f.begun, f.share = true, execution.Share{} // parts of a block whose writer ended before its last are void
		return true, nil
	}
	if !f.begun {
		f.begun, f.share = true, execution.Share{}
		return false, nil
	}
	return true, nil
}

// close returns what was gathered.
func (f *feed) close() execution.Share {
	defer func() { f.share = execution.Share{} }()
	return f.share
}
