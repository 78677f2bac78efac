package keeperctl

import (
	"context"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/services/keeperctl/doctor"
)

// mostListed bounds what is counted by listing it.
const mostListed = 1000

// lookAtState asks the database, and the processes whether they are ready.
func (s *session) lookAtState(ctx context.Context) *doctor.State {
	state := &doctor.State{}
	var wait sync.WaitGroup
	wait.Go(func() { s.askProcesses(ctx, state) })
	defer wait.Wait()
	db, err := s.unasked(ctx)
	if err != nil {
		state.Error = err
		return state
	}
	if state.Error = db.Health(ctx); state.Error != nil {
		return state
	}
	if state.Schema = db.CheckSchema(ctx); state.Schema != nil {
		return state
	}
	if err := s.countState(ctx, db, state); err != nil {
		state.Error = err
	}
	return state
}

func (s *session) countState(ctx context.Context, db *pg.DB, state *doctor.State) error {
	at, err := db.Progress(ctx)
	if err != nil {
		return err
	}
	state.Halted, state.Started, state.Skew, state.Partitions = at.Halted, !at.Watermark.Hash.IsZero(), at.Skew(),
		at.Partitions
	state.Block, state.TimeMs = at.Watermark.Number, at.Watermark.TimeMs
	generations, err := db.Generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range generations {
		if !g.Active && g.KeptUpToDate(s.Keeper.LogPartitions) {
			state.Leftover = append(state.Leftover, g.Number)
		}
	}
	liquidations, err := db.Liquidations(ctx)
	if err != nil {
		return err
	}
	for _, l := range liquidations {
		if l.Status == pg.LiquidationFailed {
			state.Failed++
		}
	}
	parked, err := db.Delayed().List(ctx, delayed.Parked, "", mostListed)
	state.Parked = len(parked)
	return err
}

// lookAtTopics asks the brokers.
func (s *session) lookAtTopics(ctx context.Context) *doctor.Topics {
	topics := &doctor.Topics{Unsent: map[string]int64{}}
	client, err := s.kafka()
	if err != nil {
		topics.Error = err
		return topics
	}
	if _, topics.Error = client.Reach(ctx); topics.Error != nil {
		return topics
	}
	for _, spec := range bus.Specs(s.Keeper.Topics()...) {
		topics.All = append(topics.All, lookAtTopic(ctx, client, spec))
	}
	s.lookAtLetters(ctx, client, topics)
	s.countUnread(ctx, client, topics)
	return topics
}

func lookAtTopic(ctx context.Context, client *bus.Client, spec bus.TopicSpec) doctor.Topic {
	t := doctor.Topic{Name: spec.Name, Want: spec.Partitions}
	r, err := client.Replicas(ctx, spec.Name)
	if t.Missing = bus.NoTopic(err); t.Missing {
		return t
	}
	t.Error, t.Partitions, t.Copies, t.InSync, t.Leaderless = err, r.Partitions, r.Copies, r.InSync, r.Leaderless
	if err == nil && t.Partitions == t.Want {
		t.Settings = client.Verify(ctx, []bus.TopicSpec{spec})
	}
	return t
}

// lookAtLetters counts the dead letters of the last hour; none where they cannot be asked for.
func (s *session) lookAtLetters(ctx context.Context, client *bus.Client, topics *doctor.Topics) {
	topic := wire.DeadLetterTopic(s.Keeper.ChainID)
	first, err := client.OffsetAt(ctx, topic, 0, time.Now().Add(-time.Hour))
	if err != nil {
		return
	}
	for r, err := range client.Scan(ctx, topic, 0, first) {
		if err != nil {
			return
		}
		if l := (deadletter.Letter{Record: r}); l.Source() == wire.Disputes {
			topics.Disputes = append(topics.Disputes, l.About()+": "+l.Why())
		} else {
			topics.DeadLetters++
		}
	}
}

// countUnread notes what statevm and the webhooks' receivers have before them.
func (s *session) countUnread(ctx context.Context, client *bus.Client, topics *doctor.Topics) {
	db, err := s.database(ctx)
	if err != nil {
		return // that is found elsewhere
	}
	at, err := db.Progress(ctx)
	if err != nil {
		return
	}
	for _, o := range at.Offsets {
		_, end, err := client.Bounds(ctx, wire.LogTopic(s.Keeper.ChainID), o.Partition)
		if err != nil {
			return
		}
		topics.Lag = append(topics.Lag, end-o.Next)
	}
	results := wire.ResultTopic(s.Keeper.ChainID)
	described, err := client.Describe(ctx, results)
	if err != nil {
		return
	}
	for _, to := range s.Notify.Open() {
		for part := range described {
			at, known, err := db.Notified().Place(ctx, to.Name, results, part)
			if err != nil || !known {
				continue
			}
			if _, end, err := client.Bounds(ctx, results, part); err == nil {
				topics.Unsent[to.Name] += end - at.Next
			}
		}
	}
}

// lookAtLedger notes the state of the signers in the database, and on the chain. The chain is asked first, as
// a number is stored before it is sent.
func (s *session) lookAtLedger(ctx context.Context, f *doctor.Facts) {
	if f.State == nil || f.State.Error != nil || f.State.Schema != nil {
		return
	}
	node, err := s.node(ctx)
	if err != nil {
		return
	}
	db, err := s.database(ctx)
	if err != nil {
		return
	}
	for i := range f.Signers {
		if latest, err := node.NonceAt(ctx, f.Signers[i].Address, evm.Latest); err == nil {
			f.Signers[i].Latest = &latest
		}
	}
	all, err := txstore.NewSigners(db).List(ctx)
	if err != nil {
		f.State.Error = err
		return
	}
	for i := range f.Signers {
		one := &f.Signers[i]
		at := slices.IndexFunc(all, func(s txstore.SignerStatus) bool { return s.Signer == one.Address })
		if at < 0 {
			continue
		}
		one.Known, one.Paused, one.Attended = true, text.FirstLine(all[at].Paused), all[at].LeaseLeft > 0
		one.LeaseAhead = one.Attended && lease.ClockWentBack(all[at].LeaseAhead)
		one.NextNonce, one.InFlight = all[at].NextNonce, all[at].InFlight
		if spent, err := txstore.NewIntents(db).Spent(ctx, one.Address); err == nil {
			one.Spent = spent.Sum()
		}
		if one.Latest != nil {
			one.Gaps = lastingGaps(ctx, db, one)
		}
	}
}

// gapLasts is how long a number may be without a transaction: a sender fills it after a few blocks.
const gapLasts = time.Minute

// lastingGaps are the numbers below which nothing is missing, and that keep signed ones waiting for longer.
func lastingGaps(ctx context.Context, db *pg.DB, s *doctor.Signer) (gaps []uint64) {
	numbers, err := txstore.NewSigners(db).Numbers(ctx, s.Address, *s.Latest, mostListed)
	if err != nil {
		return nil
	}
	for i, n := range numbers {
		if n.State != nonce.Signed && n.State != nonce.Consumed && n.Age > gapLasts && signedOf(numbers[i:]) > 0 {
			gaps = append(gaps, n.Nonce)
		}
	}
	return gaps
}
