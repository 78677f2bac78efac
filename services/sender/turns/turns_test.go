package turns

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

var ourSigner, masterSigner, otherSigner = chain.Address{0xaa}, chain.Address{0x11}, chain.Address{0x33}

// bench is the turns of the second of three keepers, on clocks that the test moves.
type bench struct {
	*Tracker
	at  time.Time // of the machine
	log bytes.Buffer
}

func newBench(change ...func(*tier.Config)) *bench {
	b := &bench{at: time.UnixMilli(5_000_000)}
	cfg := tier.DefaultConfig()
	cfg.Window = 30 * time.Second // by which these tests count, whatever the default is
	cfg.Enabled, cfg.Priority = true, 2
	cfg.Peers = []tier.Peer{{Tier: 1, Signers: []chain.Address{masterSigner}},
		{Tier: 3, Signers: []chain.Address{otherSigner}}}
	for _, c := range change {
		c(&cfg)
	}
	machine := func() time.Time { return b.at }
	b.Tracker = New(Config{Tier: cfg, Head: headtrack.New(machine), Clock: machine,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: zerolog.New(&b.log)})
	return b
}

// head lets a block of a time come.
func (b *bench) head(ms uint64) *bench {
	b.cfg.Head.Set(chain.BlockRef{Number: ms / 450, Hash: chain.Hash{1}, TimeMs: ms}, b.at)
	return b
}

func (b *bench) logged(text string) bool { return strings.Contains(b.log.String(), text) }

func orderAt(n byte, dueSinceMs uint64) job.Job {
	return job.Job{
		ID: job.OrderID(chain.Hash{n}, 1), Kind: job.Order, Key: chain.Hash{n}, DueSinceMs: dueSinceMs,
		ExpiresMs: dueSinceMs + 300_000, Signer: ourSigner,
		Evidence: job.Evidence{Block: chain.BlockRef{Number: dueSinceMs / 450}},
	}
}

// by is the execution of an order.
func by(sender chain.Address, n byte, atMs uint64) execution.Execution {
	return execution.Execution{
		Kind: job.Order, Key: chain.Hash{n}, Result: execution.Executed, Tx: chain.Tx{From: sender},
		Block: chain.BlockRef{Number: atMs / 450, TimeMs: atMs}, Pos: chain.LogPos{Block: atMs / 450},
	}
}

const dueSince = 60_000_000

// TIER-9, TIER-11: a job waits for the Master's window to pass, and is handed out then; what is stored and not claimed
// in its window waits for the next.
func TestTurnWaits(t *testing.T) {
	b := newBench().head(dueSince)
	j := orderAt(1, dueSince)
	if b.Admit(j) || !b.queue.Exists(j.ID) || !b.logged("waiting for the Master's window") {
		t.Fatalf("not waiting: %s", &b.log)
	}
	if v := b.Ask(j).Verdict; v.Kind != txmanager.Defer || v.Pause != longestYield*time.Millisecond {
		t.Errorf("a stored job in another's window: %+v", v)
	}
	if got := b.head(dueSince + 29_999).Ready(); got != nil {
		t.Errorf("too early: %v", got)
	}
	if got := b.head(dueSince + 30_000).Ready(); len(got) != 1 || got[0].ID != j.ID || b.queue.Exists(j.ID) {
		t.Fatalf("its window has begun: %v", got)
	}
	if v := b.Ask(j).Verdict; v.Kind != txmanager.Proceed {
		t.Errorf("in its window: %+v", v)
	}
	b.Taken(j)
	if !b.logged("taking over from the Master: its window passed") {
		t.Errorf("nothing is said of taking over: %s", &b.log)
	}
	b.head(dueSince + 57_000)
	if v := b.Ask(j).Verdict; v.Kind != txmanager.Defer {
		t.Errorf("in the last 3 s of its window: %+v", v)
	}
	if turn := b.Ask(j); turn.Mine || turn.Passed {
		t.Errorf("in the last 3 s of its window: %+v", turn)
	}
	if turn := b.head(dueSince + 60_000).Ask(j); turn.Mine || !turn.Passed {
		t.Errorf("in the next window: %+v", turn)
	}
	if turn := b.Ask(job.Job{Kind: txm.Filler}); !turn.Mine || turn.Passed {
		t.Error("filling a gap is nobody else's")
	}
	if v := b.head(dueSince + 330_001).Ask(j).Verdict; v.Kind != txmanager.Drop || v.Outcome != job.Expired {
		t.Errorf("past the venue's deadline: %+v", v)
	}
}

// TIER-4, TIER-10: what the chain shows ends a wait, also for words that come later and are older; and words that are
// newer than a block that left the chain count again.
func TestTurnEndsWithAnExecution(t *testing.T) {
	b := newBench().head(dueSince)
	j := orderAt(1, dueSince)
	b.Admit(j)
	b.Executed([]execution.Execution{by(masterSigner, 1, dueSince+900)})
	if b.queue.Exists(j.ID) || !b.logged("dropped: it was executed") {
		t.Error("it waits for what was done")
	}
	if b.Admit(j); b.queue.Exists(j.ID) {
		t.Error("old words let it wait again")
	}
	again := j
	again.Evidence.Block.Number = (dueSince + 900) / 450
	if b.Admit(again); !b.queue.Exists(j.ID) {
		t.Error("it is due in a newer block: its execution left the chain")
	}
}

// TIER-4, TIER-11: what was stored and is another's now ends as done when the other has done it, and not as expired
// when the venue's deadline has passed.
func TestStoredTaskEndsWithAnotherTiersExecution(t *testing.T) {
	b := newBench().head(dueSince)
	j := orderAt(1, dueSince)
	if v := b.Ask(j).Verdict; v.Kind != txmanager.Defer {
		t.Fatalf("before: %+v", v)
	}
	b.Executed([]execution.Execution{by(masterSigner, 1, dueSince+900)})
	if v := b.head(dueSince + 331_000).Ask(j).Verdict; v.Outcome != job.SkippedDone {
		t.Errorf("after: %+v", v)
	}
	j.Evidence.Block.Number = (dueSince + 900) / 450 // found again in a newer block: the execution left the chain
	if v := b.Ask(j).Verdict; v.Outcome != job.Expired {
		t.Errorf("found again: %+v", v)
	}
}

// TIER-11: what waited for so long that the venue takes it no longer is told of. A trigger whose condition held for a
// moment is said once, and leaves the queue without an alarm: nobody could have executed it since.
func TestOldJobsLeaveTheQueue(t *testing.T) {
	for end, deadline := range map[string]uint64{"ended": dueSince + 300_000, "lapsed": 0} {
		b := newBench().head(dueSince)
		j := orderAt(1, dueSince)
		j.ExpiresMs = deadline
		b.Admit(j)
		if got := b.head(dueSince + 330_000).Ready(); got != nil || b.queue.Exists(j.ID) {
			t.Errorf("%s: still there: %v", end, got)
		}
		if alarm := b.logged("no keeper has executed this job"); alarm != (end == "ended") {
			t.Errorf("%s: an alarm: %t", end, alarm)
		}
	}
}

// TIER-12: a job that needs nobody any more leaves the queue with its attempt; one that failed stays, and is the next
// tier's in time.
func TestTurnAfterAnAttempt(t *testing.T) {
	for outcome, stays := range map[job.Outcome]bool{
		job.Done: false, job.LostRace: false, job.SkippedDone: false, job.DroppedRecovered: false,
		job.CancelledByVenue: false, job.FrozenByVenue: false,
		job.Reverted: true, job.Refused: true, job.Foreign: true, job.Withdrawn: true,
	} {
		b := newBench().head(dueSince)
		j := orderAt(1, dueSince)
		b.Admit(j)
		b.Ended(j.ID, outcome)
		if b.queue.Exists(j.ID) != stays {
			t.Errorf("%s: in the queue %t", outcome, b.queue.Exists(j.ID))
		}
	}
}

// TIER-10: jobs that a backup executed, and jobs that could have been, accuse the Master; the first backup then has its
// jobs at once, and gives them back.
func TestTurnFollowsEvidence(t *testing.T) {
	b := newBench().head(dueSince)
	b.Published(orderAt(9, dueSince)) // the probe of its minute
	news := b.Changed()
	for n := byte(1); n <= 3; n++ {
		b.Published(orderAt(n, dueSince+uint64(n)))
	}
	b.head(dueSince + 31_000)
	early := orderAt(6, dueSince+20_000) // said before the evidence changes
	b.Admit(early)
	b.Executed([]execution.Execution{by(ourSigner, 1, dueSince+31_000), by(otherSigner, 2, dueSince+31_000)})
	v, err := observed(t, b, txmanager.Verdict{}, orderAt(3, dueSince+3))
	if err != nil || v.Kind != txmanager.Proceed || !b.logged("the Master is suspected: it missed 3 jobs") {
		t.Fatalf("%+v, %v; %s", v, err, &b.log)
	}
	select {
	case <-news:
	default:
		t.Error("nobody was woken")
	}
	late := orderAt(4, dueSince+31_000)
	if b.Admit(late) {
		t.Error("others heed a suspicion 3 s later")
	}
	if got := b.head(dueSince + 34_000).Ready(); len(got) != 2 || got[0].ID != early.ID || got[1].ID != late.ID {
		t.Errorf("ready %v", got)
	}
	b.Taken(late)
	if !b.logged("taking over from the Master: it is suspected") {
		t.Errorf("%s", &b.log)
	}
	waiting := orderAt(5, dueSince+35_000)
	b.Executed([]execution.Execution{by(masterSigner, 77, dueSince+35_000)})
	if !b.logged("the Master is no longer suspected") || b.head(dueSince+35_000).Admit(waiting) {
		t.Errorf("one success clears: %s", &b.log)
	}
}

// TIER-16: a backup that stands in for a suspected Master goes before its window rightly, and its age is not counted;
// nor is what owners do themselves. A backup that does not wait, and an account that executes our jobs, are.
func TestOnlyFaultsAreCountedAgainstTiers(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := newBench().head(dueSince)
	b.cfg.Metrics = NewMetrics(reg)
	b.Read(dueSince)
	stranger := chain.Address{0x77}
	for n := byte(1); n <= 6; n++ {
		b.Published(orderAt(n, dueSince+uint64(n)))
	}
	b.Executed([]execution.Execution{by(ourSigner, 1, dueSince+5000)}) // without any reason
	cancelled := by(stranger, 2, dueSince+5000)
	cancelled.Result, cancelled.Reason = execution.Cancelled, "USER_INITIATED_CANCEL"
	b.Executed([]execution.Execution{cancelled, by(stranger, 90, dueSince+5000), by(stranger, 3, dueSince+5000)})
	b.head(dueSince + 31_000)
	for n := byte(4); n <= 6; n++ {
		b.Executed([]execution.Execution{by(otherSigner, n, dueSince+31_000)})
	}
	if !b.logged("the Master is suspected") {
		t.Fatalf("%s", &b.log)
	}
	for n := byte(10); n <= 12; n++ {
		b.Published(orderAt(n, dueSince+32_000))
		b.Executed([]execution.Execution{by(ourSigner, n, dueSince+35_000)})
	}
	want := "# HELP sender_tier_executed_total Jobs executed on the chain, by the tier of the transaction's sender; " +
		"0 is somebody else.\n" + `# TYPE sender_tier_executed_total counter
sender_tier_executed_total{kind="order",tier="0"} 1
sender_tier_executed_total{kind="order",tier="2"} 4
sender_tier_executed_total{kind="order",tier="3"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "sender_tier_executed_total"); err != nil {
		t.Error(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ages := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "sender_tier_execution_age_seconds" {
				ages[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	if ages["2"] != 1 || ages["0"] != 1 {
		t.Errorf("ages of %v jobs", ages)
	}
}

// A job that is published again, from a state of before its execution, gives its name to no later one: that is the next
// job's of the same need, and accuses whoever let that one pass.
func TestOldWordsNameNoExecution(t *testing.T) {
	b := newBench().head(dueSince)
	first, second := orderAt(1, dueSince), orderAt(1, dueSince+60_000)
	second.ID = job.OrderID(chain.Hash{1}, 2) // its owner has changed the order
	b.Published(first)
	b.Executed([]execution.Execution{by(masterSigner, 1, dueSince+900)})
	b.Published(second)
	b.Published(first) // the topic is read again
	b.head(dueSince + 121_000)
	b.Executed([]execution.Execution{by(otherSigner, 1, dueSince+121_000)})
	if one, two := b.evidence.Missed(1), b.evidence.Missed(2); one != 1 || two != 1 {
		t.Errorf("the Master missed %d jobs and tier 2 %d", one, two)
	}
}

// A cancel waits for its window like any job, ends with whatever ends the order, and accuses nobody: a keeper may leave
// what expired to others, and no log tells who has cancelled it.
func TestCancelsAccuseNobody(t *testing.T) {
	b := newBench()
	for n := byte(1); n <= 4; n++ {
		dueSince := uint64(dueSince) + uint64(n)*300_000
		expired := orderAt(n, dueSince-300_000)
		j := job.Job{ID: job.CancelID(expired), Kind: "cancelOrder", Key: expired.Key, DueSinceMs: dueSince,
			Signer: ourSigner, Evidence: job.Evidence{Block: chain.BlockRef{Number: dueSince / 450}}}
		if b.head(dueSince).Admit(j) || !b.queue.Exists(j.ID) {
			t.Fatal("it does not wait for the Master's window")
		}
		if ready := b.head(dueSince + 30_000).Ready(); len(ready) != 1 {
			t.Fatalf("ready in our window: %v", ready)
		}
		if v, err := observed(t, b, txmanager.Verdict{}, j); err != nil || v.Kind != txmanager.Proceed {
			t.Fatalf("%+v, %v", v, err)
		}
		b.Published(expired)
		cancelled := by(ourSigner, n, dueSince+31_000)
		cancelled.Result, cancelled.Reason = execution.Cancelled, "USER_INITIATED_CANCEL"
		b.Executed([]execution.Execution{cancelled})
		if v := b.head(dueSince + 61_000).Ask(j).Verdict; v.Outcome != job.SkippedDone {
			t.Errorf("after the order has ended: %+v", v)
		}
	}
	if one, three := b.evidence.Missed(1), b.evidence.Missed(3); one != 0 || three != 0 {
		t.Errorf("the Master missed %d, tier 3 %d", one, three)
	}
}

// A refused or failing recheck proves nothing.
func TestOnlySuccessIsProof(t *testing.T) {
	b := newBench().head(dueSince)
	for n := byte(1); n <= 4; n++ {
		j := orderAt(n, dueSince)
		b.Published(j)
		b.head(dueSince + 31_000)
		_, _ = observed(t, b, txmanager.End(job.Refused, "poison"), j)
	}
	if slices.Contains(b.suspects(), true) {
		t.Error("a poison job accuses somebody")
	}
}

// TIER-9: a liquidation that is renewed begins its windows anew, also where an intent of its former life is stored.
func TestTurnOfTheRenewed(t *testing.T) {
	b := newBench().head(dueSince + 40_000)
	old := job.Job{ID: "liquidation:x:1", Kind: job.Liquidation, DueSinceMs: dueSince}
	if !b.Admit(old) {
		t.Fatal("it is the first backup's")
	}
	renewed := old
	renewed.DueSinceMs = dueSince + 39_000
	if b.Admit(renewed) {
		t.Error("it is the Master's again")
	}
	if v := b.Ask(old).Verdict; v.Kind != txmanager.Defer {
		t.Errorf("the stored intent: %+v", v)
	}
}

// TIER-7, TIER-9: the policy delay runs on this machine's clock, from when the keeper first heard of a job, and holds
// everything back after a start.
func TestTurnUnderDelay(t *testing.T) {
	b := newBench(func(c *tier.Config) { c.Policy, c.Priority, c.Window = tier.PolicyDelay, 2, 10*time.Second }).
		head(dueSince)
	j := orderAt(1, dueSince)
	if b.Admit(j) || !b.logged("waiting for this tier's delay to pass") {
		t.Fatal("it acts at once after a start")
	}
	b.at = b.at.Add(29 * time.Second)
	b.Published(j)
	if got := b.Ready(); got != nil {
		t.Errorf("within the recovery buffer: %v", got)
	}
	b.at = b.at.Add(time.Second)
	if got := b.Ready(); len(got) != 1 {
		t.Errorf("after the recovery buffer: %v", got)
	}
	b.at = b.at.Add(time.Hour)
	late := orderAt(2, dueSince)
	b.Admit(late)
	b.at = b.at.Add(10*time.Second - time.Millisecond)
	if got := b.Ready(); got != nil {
		t.Errorf("within its delay: %v", got)
	}
	b.at = b.at.Add(time.Millisecond)
	if got := b.Ready(); len(got) != 1 || got[0].ID != late.ID {
		t.Errorf("after its delay: %v", got)
	}
}

// A clock that is set, back or ahead, lets nobody wait for longer and nobody act earlier under the policy delay.
func TestDelayOutlivesAClockStep(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		b := newBench(func(c *tier.Config) { c.Policy, c.RecoveryBuffer = tier.PolicyDelay, 0 })
		b.at = time.Now()
		b.began = b.at
		j := orderAt(1, dueSince)
		b.Admit(j)
		(*struct{ wall uint64 })(unsafe.Pointer(&b.at)).wall += uint64(step/time.Second) << 30 // what a set clock reads
		if b.at.Sub(b.began) != 0 || b.at.Unix() != b.began.Add(step).Unix() {
			t.Fatalf("%s is not the clock of %s, set by %s", b.at, b.began, step)
		}
		b.at = b.at.Add(30*time.Second - time.Millisecond)
		if b.Ask(j).Mine {
			t.Errorf("set by %s: ours within its delay", step)
		}
		if b.at = b.at.Add(time.Millisecond); !b.Ask(j).Mine {
			t.Errorf("set by %s: not ours after its delay", step)
		}
	}
}

// TIER-8: a keeper that shares sends nothing before it has read what the chain shows; one that is alone has nothing to
// read.
func TestGateAwaitsEvidence(t *testing.T) {
	b := newBench()
	if got := b.EvidenceMs(dueSince); got != 0 {
		t.Errorf("read up to %d", got)
	}
	b.Read(dueSince - 900)
	b.Read(dueSince - 1800) // a partition may go back in a reorg
	if got := b.EvidenceMs(dueSince); got != dueSince-900 {
		t.Errorf("read up to %d", got)
	}
	if got := alone().EvidenceMs(dueSince); got != dueSince {
		t.Errorf("alone: %d", got)
	}
}

// TIER-15: a keeper that is alone has every turn, and remembers nothing.
func TestAloneHasEveryTurn(t *testing.T) {
	a := alone()
	j := orderAt(1, dueSince)
	a.Published(j)
	if turn := a.Ask(j); !a.Admit(j) || !turn.Mine || turn.Verdict.Kind != txmanager.Proceed || len(a.needs) > 0 ||
		len(a.found) > 0 {
		t.Errorf("%+v, %d needs", turn, len(a.needs))
	}
}

// One head that was made up turns the clock forward for as long as it is believed, and no longer: turns, and what waits
// for them, go by the chain's time again.
func TestTurnsAfterAMadeUpHead(t *testing.T) {
	b := newBench().head(dueSince)
	b.Admit(orderAt(1, dueSince))
	b.head(dueSince + 3_600_000)
	b.Ready()
	b.at = b.at.Add(time.Second)
	b.head(dueSince + 1000)
	b.Ready()
	if got := b.cfg.Head.Time(); got != dueSince+1000 {
		t.Errorf("it is %d ms after the job fell due", got-dueSince)
	}
	if turn := b.turn(orderAt(1, dueSince)); turn.Mine || turn.Owner != 1 {
		t.Errorf("turn %+v", turn)
	}
	b.Admit(orderAt(2, dueSince))
	b.at = b.at.Add(30 * time.Second)
	b.head(dueSince + 31_000)
	var ready []string
	for _, j := range b.Ready() {
		ready = append(ready, j.ID)
	}
	if !slices.Contains(ready, orderAt(2, dueSince).ID) {
		t.Errorf("ready in our window: %v", ready)
	}
}

// What nobody speaks of any more is forgotten.
func TestTurnsForget(t *testing.T) {
	b := newBench().head(dueSince)
	b.Published(orderAt(1, dueSince))
	b.Executed([]execution.Execution{by(masterSigner, 2, dueSince)})
	b.at = b.at.Add(remembered + 301*time.Second)
	b.Published(orderAt(3, dueSince))
	b.forget()
	if len(b.needs) != 1 || len(b.found) != 1 {
		t.Errorf("%d needs and %d jobs are remembered", len(b.needs), len(b.found))
	}
}

// observed leads a job through a stage that says always the same, with the evidence listening.
func observed(t *testing.T, b *bench, v txmanager.Verdict, j job.Job) (txmanager.Verdict, error) {
	t.Helper()
	stage := b.Observe(txmanager.Stage{Run: func(context.Context, *txmanager.Task) (txmanager.Verdict, error) {
		return v, nil
	}})
	return stage.Run(t.Context(), &txmanager.Task{Intent: txm.Intent{Job: j}})
}

// alone is the turns of a keeper that shares with nobody.
func alone() *Tracker {
	return New(Config{Tier: tier.DefaultConfig(), Head: headtrack.New(time.Now), Clock: time.Now,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop()})
}
