package txmanager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// queueTest is a drain over a real queue, with a stage of a test's own.
type queueTest struct {
	*drain
	db     *pg.DB
	signer chain.Address
	gates  []string
	height atomic.Uint64

	looked sync.Mutex // the jobs of a batch are looked at side by side
	trail  []string   // jobs in the order in which they were looked at
}

func newQueueTest(t *testing.T, stage func(j job.Job) (Verdict, error)) *queueTest {
	t.Helper()
	o := &queueTest{db: pgtest.DB(t), signer: chain.Address{0xaa}}
	if err := txstore.NewLeases(o.db).Register(t.Context(), o.signer, 56); err != nil {
		t.Fatal(err)
	}
	metrics := NewMetrics(prometheus.NewRegistry())
	term, err := lease.Acquire(t.Context(), txstore.NewLeases(o.db), o.signer, lease.NewOwner("test"), time.Minute,
		metrics.Leases)
	if err != nil {
		t.Fatal(err)
	}
	o.drain = &drain{
		duty: duty{term: term, signer: o.signer, store: txstore.NewIntents(o.db), limits: limits{},
			turns: alone{}, metrics: metrics, log: zerolog.Nop()},
		read:     func(context.Context, []*Task) error { return nil },
		dispatch: dispatch{launched: func() error { return nil }},
		stages: []Stage{{Name: "test", Run: func(_ context.Context, t *Task) (Verdict, error) {
			o.looked.Lock()
			o.trail = append(o.trail, t.Job().ID)
			o.looked.Unlock()
			return stage(t.Job())
		}}},
		upkeep: upkeep{numbers: unmoved{}, funds: counts(func() {}), called: func() bool { return false },
			idle: func(context.Context) error { return nil }},
		slots: slots{batch: 1, held: func() string { return "" }, waiting: new(waiting),
			free: func(context.Context) (int, int, error) { return math.MaxInt, math.MaxInt, nil }},
		deferred: deferred{clock: time.Now, head: o.height.Load, deferrals: map[int64]deferral{},
			yielded: map[int64]time.Time{}},
		endings: endings{maxWait: time.Hour, ended: func() {},
			rest: func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} }},
		blocked: func(reason string) { o.gates = append(o.gates, reason) },
	}
	return o
}

// unmoved are nonces that are as they were, or cannot be read.
type unmoved struct{ err error }

func (n unmoved) reconcile(context.Context) error  { return n.err }
func (unmoved) housekeeping(context.Context) error { return nil }

// counts is called when the money is counted.
type counts func()

func (c counts) count(context.Context) error { c(); return nil }

// queue stores jobs, the more urgent the earlier.
func (o *queueTest) queue(t *testing.T, ids ...string) {
	t.Helper()
	for i, id := range ids {
		j := job.Job{ID: id, Kind: job.Order, Class: job.ClassMarketOrder, DueSinceMs: uint64(i), Signer: o.signer}
		if _, err := txstore.NewIntents(o.db).Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
}

func (o *queueTest) outcomes(t *testing.T) map[string]job.Outcome {
	t.Helper()
	ended, err := txstore.NewIntents(o.db).Unreported(t.Context(), o.signer, 100)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]job.Outcome{}
	for _, e := range ended {
		outcomes[e.Intent.Job.ID] = e.Intent.Outcome
	}
	return outcomes
}

// NON-9, LIQ-6: the most urgent first; one that waits is passed over, one that has ended is gone.
func TestDrainTakesTheMostUrgentFirst(t *testing.T) {
	o := newQueueTest(t, func(j job.Job) (Verdict, error) {
		if j.ID == "b" {
			return Wait("no report yet"), nil
		}
		return End(job.DroppedRecovered, "healthy"), nil
	})
	o.queue(t, "a", "b", "c")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.trail, []string{"a", "b", "c"}) {
		t.Errorf("took %v", o.trail)
	}
	want := map[string]job.Outcome{"a": job.DroppedRecovered, "c": job.DroppedRecovered}
	if got := o.outcomes(t); !reflect.DeepEqual(got, want) {
		t.Errorf("ended: %v", got)
	}
	clear(o.deferrals)
	if err := o.pass(t.Context()); err != nil || o.trail[len(o.trail)-1] != "b" {
		t.Errorf("what waited is not tried again: %v, %v", o.trail, err)
	}
}

// A job of which an odd answer came is tried again at the next head, however little or much time that takes, or when
// there is news of it.
func TestDrainWaitsForHeads(t *testing.T) {
	news := make(chan struct{})
	o := newQueueTest(t, func(j job.Job) (Verdict, error) {
		v := odd("Panic(code 17)")
		if j.ID == "b" {
			v.Heads, v.Wake, news = 3, news, nil
		}
		return v, nil
	})
	heard := news
	o.height.Store(100)
	o.queue(t, "a", "b")
	for _, c := range []struct {
		when   string
		happen func()
		want   []string
	}{
		{"at first", func() {}, []string{"a", "b"}},
		{"at the same head", func() {}, nil},
		{"at the next head", func() { o.height.Store(101) }, []string{"a"}},
		{"with the news", func() { close(heard) }, []string{"b"}},
		{"three heads later", func() { o.height.Store(104) }, []string{"a", "b"}},
	} {
		c.happen()
		o.trail = nil
		if err := o.pass(t.Context()); err != nil || !slices.Equal(o.trail, c.want) {
			t.Errorf("%s: took %v, %v; want %v", c.when, o.trail, err, c.want)
		}
	}
}

func TestDrainStopsAtAClosedGate(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Shut("no new block"), nil })
	o.queue(t, "a", "b")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.trail, []string{"a"}) || !slices.Equal(o.gates, []string{"no new block"}) {
		t.Errorf("took %v, gate said %v", o.trail, o.gates)
	}
}

// TIER-5: what could not be asked is asked again; the job stays.
func TestDrainKeepsTheJobWhenItCannotTell(t *testing.T) {
	failure := errors.New("connection refused")
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, failure })
	o.queue(t, "a")
	if err := o.pass(t.Context()); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if got := o.outcomes(t); len(got) != 0 {
		t.Errorf("ended: %v", got)
	}
}

// TIER-11: nothing waits for ever, and nothing vanishes silently.
func TestDrainGivesUpWaiting(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Wait("no report yet"), nil })
	o.maxWait = -time.Second
	o.queue(t, "a")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.outcomes(t); got["a"] != job.Expired {
		t.Errorf("ended: %v", got)
	}
}

// What is as urgent as a liquidation may be taken up again at once when it has waited too long: whoever did not answer
// is no reason to rest.
func TestDrainPutsNoLiquidationOff(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return odd("Panic(code 17)"), nil })
	o.maxWait = -time.Second
	o.rest = func(i txm.Intent, outcome job.Outcome) txm.Rest {
		return txm.After(outcome, i.Tries, nowMs, time.Minute)
	}
	jobs := map[job.Kind]txm.Admission{job.Liquidation: txm.NewAttempt, job.Adl: txm.NewAttempt, job.Order: txm.Cooling}
	said := func(kind job.Kind, state uint64) txm.Admission {
		j := job.Job{ID: string(kind), Kind: kind, Key: chain.Hash{byte(len(kind))}, Signer: o.signer}
		j.Evidence.Block.TimeMs = state
		a, err := txstore.NewIntents(o.db).Enqueue(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for kind := range jobs {
		said(kind, nowMs)
	}
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, want := range jobs {
		if got := said(kind, nowMs+1000); got != want {
			t.Errorf("a %s, found again a second later, is %s, want %s", kind, got, want)
		}
	}
}

func TestDrainEndsWithTheTerm(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return End(job.SkippedDone, "done"), nil })
	o.queue(t, "a")
	if err := txstore.NewLeases(o.db).Release(t.Context(), o.term.Fence()); err != nil {
		t.Fatal(err)
	}
	if err := o.pass(t.Context()); !lease.Lost(err) {
		t.Errorf("got %v, want to be fenced out", err)
	}
}

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := map[string]string{}
		w := &worker{name: "signer x", log: zerolog.Nop()}
		w.Notice = func(part, reason string) { notices[part] = reason }
		start, wake := time.Now(), make(chan struct{}, 1)
		var at []time.Duration
		woken := func() [2]<-chan struct{} { return [2]<-chan struct{}{wake} }
		err := w.loop(t.Context(), pass{name: "test", wake: woken, run: func(context.Context) error {
			at = append(at, time.Since(start))
			switch len(at) {
			case 1:
				return errors.New("away")
			case 2:
				if notices["signer x test"] != "away" {
					t.Error("nobody is told why it does not work")
				}
				wake <- struct{}{} // during the pass: not to be missed
			case 4:
				return fmt.Errorf("writing: %w", &lease.LostError{Op: "test"})
			}
			return nil
		}})
		if !lease.Lost(err) || !slices.Equal(at, []time.Duration{0, again, again, again + idle}) {
			t.Errorf("passes at %v, then %v", at, err)
		}
		if notices["signer x test"] != "" {
			t.Error("a reason outlives its loop")
		}
	})
}

// While no more transactions may be in flight no job is looked at, and afterwards no more than there are slots: nodes
// are not asked about what cannot be sent.
func TestFullSignerLooksAtNothing(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, nil })
	var looked atomic.Int64
	free := 0
	o.batch = 8
	o.stages = []Stage{{Name: "test", Run: func(context.Context, *Task) (Verdict, error) {
		looked.Add(1)
		return Verdict{}, nil
	}}}
	o.claim = func(context.Context, []*Task) (Verdict, error) {
		return Shut("as many transactions are in flight as may be"), nil
	}
	urgent := 0
	o.free = func(context.Context) (int, int, error) { return free, urgent, nil }
	o.queue(t, "a", "b", "c")
	for _, c := range []struct{ free, urgent, all int }{{0, 0, 3}, {0, 0, 3}, {2, 2, 5}, {0, 0, 5}, {0, 4, 5}} {
		free, urgent = c.free, c.urgent
		if err := o.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := looked.Load(); n != int64(c.all) {
			t.Errorf("with %d slots, %d for the urgent, %d jobs were looked at in all, want %d", c.free, c.urgent, n,
				c.all)
		}
	}
}

// A batch that is larger than there are slots fills them with the most urgent, in few statements, where the claim of
// each alone would let blocks pass.
func TestFirstBatchFillsTheSlots(t *testing.T) {
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, nil })
	slots, claims := 44, 0
	var sent []string
	o.batch = 64
	o.claim = func(_ context.Context, tasks []*Task) (Verdict, error) {
		if claims++; len(tasks) > slots-len(sent) {
			return Shut("as many transactions are in flight as may be"), nil
		}
		for _, task := range tasks {
			sent = append(sent, task.Job().ID)
		}
		return Verdict{}, nil
	}
	o.free = func(context.Context) (int, int, error) { return slots - len(sent), slots - len(sent), nil }
	o.launch = func(context.Context, []*Task) {}
	var ids []string
	for i := range o.batch {
		ids = append(ids, fmt.Sprintf("job %d", i))
	}
	o.queue(t, ids...)
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sent, ids[:slots]) || claims > 3 {
		t.Errorf("%d claims sent %v", claims, sent)
	}
}
