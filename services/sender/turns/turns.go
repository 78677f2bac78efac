package turns

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/headtrack"
)

// cleanupEvery is how often jobs that are too old are removed from the queue.
const cleanupEvery = time.Minute

// Config is what a Tracker works with.
type Config struct {
	Tier    tier.Config
	Own     []chain.Address    // this process's signers
	Head    *headtrack.Tracker // the chain's clock
	Clock   func() time.Time   // the machine's, compared with itself alone
	Metrics *Metrics
	Log     zerolog.Logger
}

// Tracker knows whose turn each job is (TIER-9, TIER-10), and guards what that rests on: the jobs this keeper has
// observed, and what the chain shows of the other keepers. A keeper that shares with nobody has every turn and gathers
// nothing. It is safe for concurrent use.
type Tracker struct {
	cfg   Config
	began time.Time
	queue *tier.Queue // of the jobs whose turn is another's; it asks the policy under the lock below

	mu       sync.Mutex
	policy   tier.Policy
	evidence *tier.FailureDetector // nil where the policy asks for none
	keepers  tier.Roster
	needs    map[job.Need]*sighting
	found    map[string]finding // by job
	own      []chain.Tx         // executions by this tier's signers, until it is known who has signed them
	readMs   uint64             // time of the block up to which evidence was read, 0 before all of the past was
	changed  chan struct{}      // closed when the evidence has changed
	moved    atomic.Bool        // it has, since the queue was last asked
	swept    time.Time          // when what is old was last forgotten
}

// sighting is what was observed of a need.
type sighting struct {
	ids        []string  // of the jobs published since it was last executed, the newest last
	dueSinceMs uint64    // of the newest
	done       uint64    // number of the block in which it was last executed; 0 = never
	last       time.Time // when anything was last heard of it, by the machine's clock
}

// finding is when a job was first and last observed, and its newest due time: that of a stored job may be of a former
// life.
type finding struct {
	firstMs, dueSinceMs uint64 // as in tier.Job
	last                time.Time
}

// New makes a tracker that has observed nothing yet.
func New(c Config) *Tracker {
	t := &Tracker{
		cfg: c, began: c.Clock(), keepers: c.Tier.Roster(c.Own),
		needs: map[job.Need]*sighting{}, found: map[string]finding{},
		changed: make(chan struct{}),
	}
	cfg := c.Tier
	switch {
	case !cfg.Enabled:
		t.policy = tier.Alone{}
	case cfg.Policy == tier.PolicyDelay:
		t.policy = tier.Delay{Delay: cfg.ExecutionDelay(), RecoveryBuffer: cfg.RecoveryBuffer}
	default:
		t.evidence = tier.NewEvidence(cfg.Priority, cfg.Tiers, cfg.Window)
		t.policy = tier.Windows{Self: cfg.Priority, Window: cfg.Window, Detector: t.evidence}
	}
	if cfg.Enabled {
		c.Log.Info().Int("tier", cfg.Priority).Str("fingerprint", cfg.Fingerprint(c.Own)).
			Msg("jobs are shared by tiers; the fingerprint is the same in all keepers of the venue")
	}
	t.queue = tier.NewQueue(asking{t}, t.now, cfg.JobMaxAge, cleanupEvery)
	return t
}

// asking is the policy, under the lock.
type asking struct{ t *Tracker }

func (a asking) Turn(j tier.Job, nowMs uint64) tier.Turn {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	return a.t.policy.Turn(j, nowMs)
}

func (a asking) Since(j tier.Job) uint64 { return a.t.policy.Since(j) }

// now is the time (ms) on the policy's clock: since the start for the policy delay, and the chain's otherwise.
func (t *Tracker) now() uint64 {
	if t.cfg.Tier.Enabled && t.cfg.Tier.Policy == tier.PolicyDelay {
		return uint64(t.cfg.Clock().Sub(t.began).Milliseconds())
	}
	return t.cfg.Head.Time()
}

// Published notes that a job was published. Every time counts: a job that is renewed begins its windows anew.
func (t *Tracker) Published(j job.Job) {
	if !t.cfg.Tier.Enabled {
		return
	}
	t.find(j)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sighted(j.Need())
	// what was found before the last execution, as in a topic that is read again, is not what the next one ends
	if j.Evidence.Block.Number >= s.done && !slices.Contains(s.ids, j.ID) {
		s.ids = append(s.ids, j.ID)
	}
	s.dueSinceMs, s.last = max(s.dueSinceMs, j.DueSinceMs), t.cfg.Clock()
	// jobs are routed to this keeper's signers, whichever process has their keys
	t.keepers[j.Signer] = t.cfg.Tier.Priority
	if t.evidence != nil && j.Kind.Lane() != job.CleanupLane { // keepers may leave what expired to others
		t.evidence.Born(j.ID, j.DueSinceMs)
	}
}

// Admit reports whether a job that was observed is to be stored now. If it is another tier's it waits in the queue, and
// if it was executed after the state it was found in it is dropped.
func (t *Tracker) Admit(j job.Job) bool {
	if !t.cfg.Tier.Enabled {
		return true
	}
	t.Published(j)
	if at := t.doneAt(j); at > j.Evidence.Block.Number {
		t.queue.Remove(j.ID)
		return false
	}
	unknown := !t.queue.Exists(j.ID)
	w := t.queue.Add(j, t.find(j).FoundMs)
	if !w.Turn.Mine && unknown {
		t.cfg.Log.Info().Str("job", j.ID).Int("owner", w.Turn.Owner).Msg(waitingFor(w.Turn))
	}
	return w.Turn.Mine
}

func waitingFor(turn tier.Turn) string {
	switch {
	case turn.EndedMs > 0:
		return "it is nobody's until it is renewed"
	case turn.Owner == 0:
		return "waiting for this tier's delay to pass"
	}
	return fmt.Sprintf("waiting for %s's window", nameOf(turn.Owner))
}

// nameOf names a tier for people.
func nameOf(tier int) string {
	if tier == 1 {
		return "the Master"
	}
	return fmt.Sprintf("tier %d", tier)
}

func (t *Tracker) doneAt(j job.Job) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.needs[j.Need()]; s != nil {
		return s.done
	}
	return 0
}

// find is what the policy has to know of a job. One that this keeper has not observed yet it has found now.
func (t *Tracker) find(j job.Job) tier.Job {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.found[j.ID]
	if !known {
		f.firstMs = now
	}
	f.dueSinceMs, f.last = max(f.dueSinceMs, j.DueSinceMs), t.cfg.Clock()
	t.found[j.ID] = f
	j.DueSinceMs = f.dueSinceMs
	return tier.Of(j, f.firstMs)
}

// Ended takes a job out of the queue that needs nobody any more (TIER-12). After a failure it stays where it is: its
// cooldown holds this tier back, and the next tier takes over.
func (t *Tracker) Ended(id string, o job.Outcome) {
	switch o { //nolint:exhaustive // every other outcome leaves the job to be done
	case job.Done, job.CancelledByVenue, job.FrozenByVenue, job.LostRace, job.SkippedDone, job.DroppedRecovered:
		t.queue.Remove(id)
	}
}

// Executed takes what the chain shows, in its order. Blocks need not be final: an accusation that a reorg contradicts
// stands until the accused executes anything. A job that was executed waits no longer.
func (t *Tracker) Executed(found []execution.Execution) {
	if len(found) == 0 {
		return
	}
	var gone []string
	t.learn(func() {
		for _, e := range found {
			gone = append(gone, t.note(e)...)
		}
	})
	for _, id := range gone {
		if t.queue.Remove(id) {
			t.cfg.Log.Info().Str("job", id).Msg("dropped: it was executed")
		}
	}
}

// sighted returns what was observed of a need. The lock is held.
func (t *Tracker) sighted(n job.Need) *sighting {
	s := t.needs[n]
	if s == nil {
		s = &sighting{last: t.cfg.Clock()}
		t.needs[n] = s
	}
	return s
}

func (t *Tracker) note(e execution.Execution) []string {
	by := t.keepers.Tier(e.Tx.From)
	if !e.Work() {
		by = 0 // whoever sent that executed something else, or nothing
	}
	t.noteOwn(e)
	s := t.sighted(e.Need())
	s.done = max(s.done, e.Pos.Block)
	newest := fmt.Sprintf("%s:%s", e.Kind, e.Key) // of a job that we never heard of
	if len(s.ids) > 0 {
		newest = s.ids[len(s.ids)-1]
	}
	if t.evidence != nil {
		t.evidence.Executed(newest, by, e.Block.TimeMs)
	}
	if t.readMs > 0 { // what was executed before we began is not counted
		suspects := t.suspects()
		stoodIn := slices.Contains(suspects[:min(by, len(suspects))], true) // for a tier before it
		t.cfg.Metrics.evidence.ExecutedBy(by, e, s.dueSinceMs, stoodIn)
	}
	ids := s.ids
	s.ids = nil
	return ids
}

// learn lets the evidence learn, and wakes all waiters if that has changed its result.
func (t *Tracker) learn(from func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.suspects()
	from()
	after := t.suspects()
	if slices.Equal(before, after) {
		return
	}
	for tier := range after {
		switch {
		case after[tier] && !before[tier]:
			t.cfg.Log.Warn().Int("tier", tier).Msgf("%s is suspected: it missed %d jobs", nameOf(tier),
				t.evidence.Missed(tier))
		case before[tier] && !after[tier]:
			t.cfg.Log.Info().Int("tier", tier).Msgf("%s is no longer suspected: it executed a job", nameOf(tier))
		}
	}
	close(t.changed)
	t.changed = make(chan struct{})
	t.moved.Store(true)
}

// suspects returns for each tier, from 1, whether it is suspected.
func (t *Tracker) suspects() []bool {
	if t.evidence == nil {
		return nil
	}
	all := make([]bool, t.cfg.Tier.Tiers+1)
	for tier := 1; tier <= t.cfg.Tier.Tiers; tier++ {
		all[tier] = t.evidence.Suspected(tier)
	}
	return all
}

// Changed is closed when the evidence has changed.
func (t *Tracker) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Read notes the time (ms) of the block up to which evidence has been read.
func (t *Tracker) Read(blockMs uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readMs = max(t.readMs, blockMs)
}

// EvidenceMs is the time (ms) of the block up to which evidence has been read: the head's where none is asked for, 0
// while the past is still being read.
func (t *Tracker) EvidenceMs(headMs uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.evidence == nil {
		return headMs
	}
	return t.readMs
}
