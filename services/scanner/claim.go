package scanner

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// filterVersion counts the changes of what the scanner asks nodes for: the EventEmitter's three events.
const filterVersion = 1

// replacedError reports that another scanner has claimed the topic.
type replacedError struct {
	epoch uint64
	owner string
}

func (e *replacedError) Error() string {
	return fmt.Sprintf("scanner %s has claimed the log topic as epoch %d", e.owner, e.epoch)
}

// producer writes atomic batches; bus.Producer is one.
type producer interface {
	Produce(ctx context.Context, partition int, records []wire.Record) (base int64, err error)
}

// writer is a scanner that owns the log topic, under one epoch: from its claim until another one claims.
type writer struct {
	*Scanner
	epoch    uint64
	owner    string
	producer producer
	streams  []*stream // by partition; what each holds, kept up to date with what is written
	words    *words
	caughtUp chan struct{} // closed when this writer has first published the head
	// the first block of the topic, if a partition is known from its first record on; 0 otherwise
	first  uint64
	called chain.BlockRef // the newest block that was called final, whether or not a partition has been told
}

// claim makes this scanner the owner of the topic, or returns a replacedError when another one was faster.
func (s *Scanner) claim(ctx context.Context) (*writer, error) {
	s.status.set("claiming the log topic")
	w := &writer{
		Scanner: s, owner: uuid.NewString(), producer: s.newProducer(s.topic),
		streams:  make([]*stream, s.cfg.Keeper.LogPartitions),
		words:    newWords(s.decidingSpan),
		caughtUp: make(chan struct{}),
	}
	tails, tailing := errgroup.WithContext(ctx)
	for p := range w.streams {
		tails.Go(func() (err error) {
			w.streams[p], err = readTail(tailing, s.kafka, s.topic, p, w.learn)
			return err
		})
	}
	if err := tails.Wait(); err != nil {
		return nil, fmt.Errorf("reading the tail of the log topic: %w", err)
	}
	for _, st := range w.streams {
		if st.unclaimed > 0 {
			s.log.Warn().Int("partition", st.partition).Int64("records", st.unclaimed).
				Msg("the log topic does not begin with a claim: it was made anew beneath a scanner; " +
					"what stands before its first claim counts for nothing")
		}
		w.epoch = max(w.epoch, st.seen+1)
	}
	w.epoch = max(w.epoch, s.epoch+1) // a topic made anew does not know what may still be on its way to it
	s.epoch = w.epoch
	// Partition 0 first: there it is decided. The others follow only after that.
	failpoint.Hit("scanner.claim.before")
	for _, st := range w.streams {
		if err := w.declare(ctx, st); err != nil {
			return nil, fmt.Errorf("claiming the log topic as epoch %d: %w", w.epoch, err)
		}
		failpoint.Hit("scanner.claim.partition")
	}
	failpoint.Hit("scanner.claim.after")
	if err := w.checkStart(); err != nil {
		return nil, err
	}
	s.status.claimed(w.epoch)
	s.log.Info().Uint64("epoch", w.epoch).Str("owner", w.owner).Uint64("from_block", w.lowestTip()).
		Msg("log topic claimed")
	return w, nil
}

// learn takes in a message that was on the topic before this epoch.
func (w *writer) learn(m wire.Message) {
	w.collector.learn(m)
	w.words.observe(m)
}

// declare writes EPOCH to a partition and reads everything up to it: from here on nothing written under a lower epoch
// counts.
func (w *writer) declare(ctx context.Context, st *stream) error {
	record, err := w.encode(wire.Epoch{Number: w.epoch, Owner: w.owner})
	if err != nil {
		return err
	}
	offset, err := w.producer.Produce(ctx, st.partition, []wire.Record{record})
	if err != nil {
		return err
	}
	if err := st.readTo(ctx, w.kafka, w.topic, offset+1, w.learn); err != nil {
		return err
	}
	if uint64(st.claim) != w.epoch || st.owner != w.owner {
		return &replacedError{uint64(st.claim), st.owner}
	}
	return nil
}

// encode makes a control record. Only logs have a routing key of their own.
func (w *writer) encode(m wire.Message) (wire.Record, error) { return w.encodeTo(chain.Hash{}, m) }

func (w *writer) encodeTo(key chain.Hash, m wire.Message) (wire.Record, error) {
	return wire.Encode(key[:], m, w.epoch, filterVersion)
}

// checkStart finds where the topic begins, and refuses a topic of which a part is missing.
func (w *writer) checkStart() error {
	var full, empty []int
	for _, st := range w.streams {
		if st.branch.empty() {
			empty = append(empty, st.partition)
			continue
		}
		full = append(full, st.partition)
		w.first = max(w.first, st.start)
	}
	if len(full) > 0 && len(empty) > 0 && w.first == 0 {
		return fmt.Errorf("%s: partitions %v hold no block and partitions %v hold many: the topic has lost data, "+
			"and so have its readers; rebuild it",
			w.topic, empty, full)
	}
	return nil
}

// lowestTip is the number of the newest block that all partitions hold; 0 for an empty topic.
func (w *writer) lowestTip() uint64 {
	lowest := ^uint64(0)
	for _, st := range w.streams {
		if st.branch.empty() {
			return 0
		}
		lowest = min(lowest, st.branch.tip().Number)
	}
	return lowest
}

// watch reads what is written to partition 0 and returns a replacedError once another scanner has claimed the topic,
// and an error of a lost log once the topic is no longer the one that was claimed.
func (w *writer) watch(ctx context.Context, from int64) error {
	reader := w.kafka.Reader(w.topic, 0, from).Watch([32]byte{})
	for {
		r, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		m, meta, err := wire.Decode(r)
		if meta.Epoch > w.epoch { // even if this build cannot read the record
			claim, _ := m.(wire.Epoch)
			return &replacedError{meta.Epoch, claim.Owner}
		}
		if err != nil {
			return &brokenError{w.topic, 0, r.Offset, err}
		}
	}
}

func replaced(err error) (*replacedError, bool) { return errors.AsType[*replacedError](err) }

// unclear reports whether an error leaves open what was written. A new epoch settles it.
func unclear(err error) bool { return bus.OutcomeUnknown(err) }
