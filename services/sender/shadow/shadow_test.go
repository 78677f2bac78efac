package shadow

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/shadow"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txmanager"
)

// site is a shadow whose parts answer as a test says.
type site struct {
	t       *testing.T
	sender  *Sender
	head    *headtrack.Tracker
	now     time.Time
	gate    txmanager.Verdict
	verdict txmanager.Verdict
	made    bool // the check came as far as the call
	checked int
	signers []chain.Address
	kept    map[string]shadow.Trial
	down    error
}

// Run implements Check.
func (s *site) Run(_ context.Context, t *txmanager.Task) (txmanager.Verdict, error) {
	s.checked++
	if s.made {
		t.Call = txmanager.Call{Data: []byte{1}, Gas: 777}
	}
	return s.verdict, nil
}

// Close implements Check.
func (s *site) Close() {}

// Save implements Store.
func (s *site) Save(_ context.Context, trials []shadow.Trial) error {
	if s.down != nil {
		return s.down
	}
	for _, t := range trials {
		s.kept[t.JobID] = t
	}
	return nil
}

func newSite(t *testing.T) *site {
	s := &site{t: t, now: time.Unix(1_800_000_000, 0), made: true, kept: map[string]shadow.Trial{}}
	s.head = headtrack.New(func() time.Time { return s.now })
	s.sender = New(Config{MaxAge: time.Minute, Batch: 1}, Parts{
		Gate: txmanager.Stage{Run: func(context.Context, *txmanager.Task) (txmanager.Verdict, error) {
			return s.gate, nil
		}},
		Check: func(signer chain.Address, _ func()) Check { s.signers = append(s.signers, signer); return s },
		Head:  s.head, GasPrice: func(context.Context) (uint64, error) { return 5, nil }, Store: s,
		Clock: func() time.Time { return s.now }, Log: zerolog.Nop(),
	})
	s.block(100)
	return s
}

// block lets a second pass and a head come.
func (s *site) block(n uint64) {
	s.now = s.now.Add(time.Second)
	s.head.Set(chain.BlockRef{Number: n, TimeMs: n * 1000}, s.now)
}

// hear is the planner's word of the one job, from the state of a block.
func (s *site) hear(block uint64) {
	s.sender.Offer(job.Job{ID: "order:x:1", Kind: job.Order, DueSinceMs: 99_000, Signer: chain.Address{7},
		Evidence: job.Evidence{Block: chain.BlockRef{Number: block, TimeMs: block * 1000}}})
}

func (s *site) pass() shadow.Trial {
	s.t.Helper()
	if err := s.sender.pass(s.t.Context()); err != nil && s.down == nil {
		s.t.Fatal(err)
	}
	return s.kept["order:x:1"]
}

// A job is tried until it would have been sent, and never after: what is kept is the head on which it would have gone
// out, which no later word of the planner changes.
func TestTriedUntilItWouldHaveBeenSent(t *testing.T) {
	s := newSite(t)
	s.gate = txmanager.Shut("the head is old")
	s.hear(100)
	if got := s.pass(); got.SentBlock > 0 || got.Reason != "the head is old" || got.ObservedMs != 100_000 ||
		s.checked > 0 {
		t.Fatalf("behind a closed gate: %+v, checked %d times", got, s.checked)
	}
	s.gate, s.verdict = txmanager.Verdict{}, txmanager.Verdict{Kind: txmanager.Retry, Reason: "no report", Heads: 2}
	s.block(101)
	s.pass()
	s.verdict = txmanager.Verdict{}
	s.block(102)
	if got := s.pass(); got.SentBlock > 0 || s.checked != 1 {
		t.Fatalf("before it rested for two heads: %+v", got)
	}
	s.block(103)
	want := s.pass()
	if want.SentBlock != 103 || want.SentMs != 103_000 || want.Gas != 777 || want.GasPrice != 5 ||
		want.ObservedMs != 100_000 {
		t.Fatalf("%+v", want)
	}
	s.block(104)
	s.hear(104)
	if got := s.pass(); got != want || s.checked != 2 || len(s.signers) != 1 || s.signers[0] != (chain.Address{7}) {
		t.Errorf("%+v, checked %d times for %v", got, s.checked, s.signers)
	}
}

// A revert counts once for each time that the planner found the job due since: what it says again from the same state
// is no new finding.
func TestRevertsCountOnceAFinding(t *testing.T) {
	s := newSite(t)
	s.verdict = txmanager.End(job.DroppedRecovered, "healthy")
	s.hear(100)
	for range 3 {
		if got := s.pass(); got.Reverts != 1 || got.Outcome != job.DroppedRecovered {
			t.Fatalf("%+v", got)
		}
		s.hear(100)
	}
	s.block(110)
	s.hear(109)
	if got := s.pass(); got.Reverts != 2 {
		t.Fatalf("found again: %+v", got)
	}
	s.block(120)
	s.hear(119)
	s.verdict = txmanager.Verdict{}
	if got := s.pass(); got.Reverts != 2 || got.SentBlock != 120 || got.Outcome != "" {
		t.Errorf("due in the end: %+v", got)
	}
}

// What ends without a call, because others were first, is no revert.
func TestDoneElsewhereIsNoRevert(t *testing.T) {
	s := newSite(t)
	s.made, s.verdict = false, txmanager.End(job.SkippedDone, "the order is Executed")
	s.hear(100)
	if got := s.pass(); got.Reverts > 0 || got.Outcome != job.SkippedDone {
		t.Errorf("%+v", got)
	}
}

// While the database is away nothing is lost, and what is old is given up.
func TestKeptWhenTheDatabaseIsBack(t *testing.T) {
	s := newSite(t)
	s.down, s.verdict = errors.New("away"), txmanager.Wait("no report")
	s.hear(100)
	s.pass()
	s.down = nil
	if got := s.pass(); got.Reason != "no report" {
		t.Errorf("%+v", got)
	}
	s.now = s.now.Add(2 * time.Minute)
	before := s.checked
	if got := s.pass(); s.checked != before || got.Reason != "too old: no report" {
		t.Errorf("%+v, checked %d times more", got, s.checked-before)
	}
}
