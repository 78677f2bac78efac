package simulator

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

const (
	// epochMs is the time of the world at the beginning of the play, a whole multiple of the age at which jobs are born
	// again.
	epochMs = 1_749_999_900_000
	// warmUp is for how long the world runs before that: the keepers have started, and orders that will wait for
	// their price can be placed.
	warmUp = 60 * time.Second
	// coolDown is for how long the play goes on when all jobs have ended, so that the keepers learn of it.
	coolDown = 10 * time.Second
	// settle is for how long it goes on at most after the last job came.
	settle = 400 * time.Second

	blockTime  = 450 * time.Millisecond // BSC's
	reportTime = time.Second
)

// simulation is one play under way.
type simulation struct {
	scenario    Scenario
	seed        uint64
	random      *rand.Rand
	events      eventQueue
	venue       *venue.Venue
	chain       *fakechain.Chain
	keepers     []*keeper
	halted      int           // halts that last
	slow        time.Duration // how late blocks come
	unfinal     int
	planned     []plannedJob
	keys        []chain.Hash       // of what the jobs' traders made, by number from 1; zero until then
	numbers     map[chain.Hash]int // of the jobs, by key
	records     []record           // of the jobs, by number from 1
	unknownJobs int                // jobs that keepers reported on and that nobody made
	alerts      []Alert
	transcript  *transcript
	failed      error // what cannot be played
}

// record is what was seen of a job while the play went on.
type record struct {
	sent     []int           // by tier: transactions that were broadcast, each once
	outcomes [][]job.Outcome // by tier
	reported bool
}

func newSimulation(s Scenario, seed uint64, transcribe bool) *simulation {
	st := &simulation{
		scenario: s, seed: seed, venue: venue.New(1),
		random:     rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a play is to be repeated
		numbers:    map[chain.Hash]int{},
		transcript: &transcript{wanted: transcribe},
	}
	st.events.now = -warmUp
	st.planned = traffic(s, st.random)
	st.keys, st.records = make([]chain.Hash, len(st.planned)+1), make([]record, len(st.planned)+1)
	for n := range st.records {
		st.records[n] = record{sent: make([]int, s.Keepers+1), outcomes: make([][]job.Outcome, s.Keepers+1)}
	}
	cfg := fakechain.DefaultConfig()
	cfg.Seed = seed
	st.chain = fakechain.New(cfg, st.venue, st.now)
	for tier := 1; tier <= s.Keepers; tier++ {
		st.keepers = append(st.keepers, newKeeper(st, tier))
	}
	return st
}

// now is the time of the world: nobody's clock.
func (s *simulation) now() time.Time { return time.UnixMilli(epochMs).UTC().Add(s.events.now) }

// since is how long after the beginning of the play a time of the world (Unix ms) lies.
func since(ms uint64) time.Duration { return time.Duration(int64(ms)-epochMs) * time.Millisecond }

// play runs all events, and returns the result.
func (s *simulation) play(ctx context.Context) (Play, error) {
	for _, k := range s.keepers {
		s.chain.Fund(k.key.Account, initialBalance)
		k.start()
	}
	s.events.after(0, s.mine)
	s.events.at(-warmUp, s.report)
	for _, f := range s.scenario.Faults {
		s.schedule(f)
	}
	for n := range s.planned {
		w := s.planned[n]
		s.events.at(w.placed, func() { s.place(w) })
		if w.due != 0 {
			s.events.at(w.due, func() { s.transcript.addf(s, "%s is due", w.name()) })
		}
	}
	duration := time.Duration(s.scenario.Duration)
	end := duration + settle
	s.events.at(duration, func() { s.endWhenIdle(&end) })
	events := 0
	for s.failed == nil && s.events.next(end) {
		if events++; events%1000 == 0 && ctx.Err() != nil {
			return Play{}, context.Cause(ctx)
		}
	}
	p := s.results()
	p.Length, p.Events = s.events.now, events
	return p, s.failed
}

// endWhenIdle shortens the play when nothing more is to come.
func (s *simulation) endWhenIdle(end *time.Duration) {
	if slices.ContainsFunc(s.planned, s.open) {
		s.events.after(time.Second, func() { s.endWhenIdle(end) })
		return
	}
	*end = min(*end, s.events.now+coolDown)
}

// open reports whether a job may still be executed.
func (s *simulation) open(w plannedJob) bool {
	key := s.keys[w.number]
	switch row := s.chain.Get(perp.RowKey{Table: w.table(), Key: key}).(type) {
	case perp.Order:
		return w.poison == venue.Wholesome && !row.Status.Final() && (w.due != 0 || s.valid(row.Birth.TimeMs))
	case perp.Request:
		return w.poison == venue.Wholesome && !row.Status.Final() && s.valid(row.Birth.TimeMs)
	case perp.Position:
		return w.poison == venue.Wholesome && row.Status == perp.Active
	default:
		return true // not in a block yet
	}
}

// valid reports whether the venue may still take what was born at a time; when it does not, keepers have some time to
// report it.
func (s *simulation) valid(dueSinceMs uint64) bool {
	const expiration, aloud = 300 * time.Second, 70 * time.Second
	return s.events.now < since(dueSinceMs)+expiration+aloud
}

// mine makes a block, unless the chain is halted, and again and again.
func (s *simulation) mine() {
	s.events.after(blockTime+s.slow, s.mine)
	if s.halted == 0 {
		s.mined(s.chain.Mine())
	}
}

// mined lets the keepers see the newest block.
func (s *simulation) mined(ref chain.BlockRef) {
	s.transcript.block(s, ref)
	for _, k := range s.keepers {
		k.mined()
	}
}

// report publishes the prices of the second, and again and again.
func (s *simulation) report() {
	s.events.after(reportTime, s.report)
	at := uint64(s.now().UnixMilli())
	market := s.venue.Markets()[0]
	reports := []price.Report{
		venue.Report(market.IndexToken, venue.Price(centsAt(s.events.now)), at),
		venue.Report(market.ShortToken, venue.Price(100), at),
	}
	for _, k := range s.keepers {
		k.reported(reports)
	}
}

// place lets a trader act. What comes of it is in the next block.
func (s *simulation) place(w plannedJob) {
	key, act := w.act(s.venue)
	s.keys[w.number], s.numbers[key] = key, w.number
	if w.poison != venue.Wholesome {
		s.chain.Poison(key, w.poison)
	}
	s.chain.Do(act)
	if w.due == 0 {
		s.transcript.addf(s, "%s is made", w.name())
	}
}

// numberOf returns the number of the job that a keeper means, 0 for none.
func (s *simulation) numberOf(key chain.Hash) int {
	n := s.numbers[key]
	if n == 0 {
		s.unknownJobs++
	}
	return n
}

// schedule schedules the begins and ends of a fault.
func (s *simulation) schedule(f Fault) {
	for _, span := range f.times() {
		s.events.at(span[0], func() { s.begin(f) })
		if span[1] > span[0] {
			s.events.at(span[1], func() { s.end(f) })
		}
	}
}

func (s *simulation) begin(f Fault) {
	s.transcript.addf(s, "%s", f)
	switch f.What { //nolint:exhaustive // the others concern keepers
	case Halt:
		s.halted++
	case Slow:
		s.slow += time.Duration(f.By)
	case Unfinal:
		s.unfinal++
		s.chain.HoldFinality(true)
	case Reorg, ReorgDrop:
		s.reorg(f)
	}
	for _, tier := range f.tiers(s.scenario.Keepers) {
		s.keepers[tier-1].beginFault(f)
	}
}

func (s *simulation) end(f Fault) {
	s.transcript.addf(s, "%s: over", f)
	switch f.What { //nolint:exhaustive // the others concern keepers
	case Halt:
		s.halted--
	case Slow:
		s.slow -= time.Duration(f.By)
	case Unfinal:
		s.unfinal--
		s.chain.HoldFinality(s.unfinal > 0)
	}
	for _, tier := range f.tiers(s.scenario.Keepers) {
		s.keepers[tier-1].endFault(f)
	}
}

// reorg replaces the newest blocks.
func (s *simulation) reorg(f Fault) {
	if err := s.chain.Reorg(uint64(f.Depth), f.What == ReorgDrop); err != nil {
		s.failed = fmt.Errorf("fault at %s: %w", s.events.now, err)
		return
	}
	head, err := s.chain.Endpoint().Head(context.Background())
	if err != nil {
		s.failed = err
		return
	}
	s.mined(head)
}

// fortune is what a signer has: 1000 BNB, in wei.
var initialBalance = chain.Pow10(21)

// accountOf is the signer of a tier.
func accountOf(tier int) chain.Address {
	hash := chain.Keccak256(binary.BigEndian.AppendUint64([]byte("keeper"), uint64(tier)))
	return hash.Address()
}
