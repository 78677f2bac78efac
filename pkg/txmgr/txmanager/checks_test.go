package txmanager

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/signer"
)

// What waits, however briefly and however much of it there is, is not asked twice before all others were asked once:
// nothing behind it starves. It is so with waits, with another keeper's jobs, and with checks that come to an error.
func TestWaitingTasksStarveNobody(t *testing.T) {
	away := errors.New("the node is away")
	for _, c := range []struct {
		what    string
		verdict Verdict
		err     error
	}{
		{"they wait", Verdict{Kind: Retry, Pause: time.Nanosecond}, nil},
		{"they are another keeper's", Verdict{Kind: Defer, Pause: time.Nanosecond}, nil},
		{"their checks fail", Verdict{}, away},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var asked atomic.Int32
			o := newQueueTest(t, func(j job.Job) (Verdict, error) {
				if asked.Add(1) > 20 || j.ID == "behind" {
					stop()
				}
				if j.ID == "behind" {
					return Wait("its turn has come"), nil
				}
				return c.verdict, c.err
			})
			o.batch = 2
			o.queue(t, "a", "b", "c", "d", "e", "behind")
			if err := o.pass(ctx); err != nil && !errors.Is(err, away) && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			slices.Sort(o.trail)
			if !slices.Equal(o.trail, []string{"a", "b", "behind", "c", "d", "e"}) {
				t.Errorf("asked %v before everything was asked once", o.trail)
			}
		})
	}
}

// A check that comes to an error for as long as a task may wait ends its attempt.
func TestFailingChecksEnd(t *testing.T) {
	away := errors.New("the node is away")
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return Verdict{}, away })
	o.queue(t, "a")
	for _, c := range []struct {
		wait time.Duration
		want job.Outcome
	}{{time.Hour, ""}, {0, job.Expired}} {
		o.maxWait = c.wait
		clear(o.deferrals)
		if err := o.pass(t.Context()); !errors.Is(err, away) {
			t.Error(err)
		}
		if got := o.outcomes(t)["a"]; got != c.want {
			t.Errorf("with %s to wait it ended as %q", c.wait, got)
		}
	}
}

// A task whose call takes long holds nobody: not what was begun with it, and not a liquidation that comes when as many
// as there is room for are looked at.
func TestSlowCallsHoldNobody(t *testing.T) {
	for _, c := range []struct {
		what  string
		batch int
	}{{"beside others", 8}, {"where no other order finds room", 1}} {
		t.Run(c.what, func(t *testing.T) {
			o := newQueueTest(t, nil)
			slow, answer, queued := orderAt(1, 1), make(chan struct{}), make(chan struct{}, 1)
			release := sync.OnceFunc(func() { close(answer) })
			defer release()
			quick := job.Job{ID: job.LiquidationID(chain.Hash{2}, 1), Kind: job.Liquidation, Key: chain.Hash{2},
				Class: job.ClassLiquidation, DueSinceMs: 2, ExpiresMs: 300_002}
			o.claiming(c.batch, devKey(t), aBudget(&books{}, "1", "0"), marketAt(0))
			asked, inner := make(chan struct{}), o.stages[0].Run
			o.stages[0].Run = func(ctx context.Context, task *Task) (Verdict, error) {
				if task.Job().ID == slow.ID {
					close(asked)
					<-answer
				}
				return inner(ctx, task)
			}
			launched := make(chan string, 2)
			launching := make(chan context.Context, 2)
			o.launch = func(ctx context.Context, tasks []*Task) {
				launching <- ctx
				for _, task := range tasks {
					launched <- task.Job().ID
				}
			}
			o.beside, o.checks.queued, o.heads = true, queued, headsAt(nowMs, time.Now())
			o.enqueue(t, slow)
			passed := make(chan error)
			go func() { passed <- o.pass(t.Context()) }()
			soon(t, asked)
			o.enqueue(t, quick)
			queued <- struct{}{}
			if first := soon(t, launched); first != quick.ID {
				t.Errorf("%s was sent first", first)
			}
			release()
			if err := <-passed; err != nil {
				t.Fatal(err)
			}
			if second := soon(t, launched); second != slow.ID {
				t.Errorf("%s was sent then", second)
			}
			for range 2 {
				if (<-launching).Err() != nil {
					t.Error("what was launched has ended with the pass")
				}
			}
		})
	}
}

// Where more is urgent than a batch, a second is looked at beside it: what is signed slowly has its followers ready.
func TestUrgentTasksFillTheirRoom(t *testing.T) {
	o := newQueueTest(t, nil)
	o.claiming(2, devKey(t), aBudget(&books{}, "1", "0"), marketAt(0))
	asked, answer, inner := make(chan struct{}, 5), make(chan struct{}), o.stages[0].Run
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	o.stages[0].Run = func(ctx context.Context, task *Task) (Verdict, error) {
		asked <- struct{}{}
		<-answer
		return inner(ctx, task)
	}
	o.launch = func(context.Context, []*Task) {}
	o.beside, o.checks.queued, o.heads = true, make(chan struct{}), headsAt(nowMs, time.Now())
	for i := range byte(5) {
		key := chain.Hash{i + 1}
		o.enqueue(t, job.Job{ID: job.LiquidationID(key, 1), Kind: job.Liquidation, Key: key,
			Account: chain.Address{i + 1}, Class: job.ClassLiquidation, DueSinceMs: 2, ExpiresMs: 300_002})
	}
	passed := make(chan error, 1)
	go func() { passed <- o.pass(t.Context()) }()
	for range 4 {
		soon(t, asked)
	}
	release()
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
}

// soon is what comes from a channel, unless that takes so long that it never will.
func soon[T any](t *testing.T, from <-chan T) (what T) {
	t.Helper()
	select {
	case what = <-from:
	case <-time.After(10 * time.Second):
		t.Fatal("it never comes")
	}
	return what
}

// slowKey takes its time for each signature.
type slowKey struct {
	signer.Signer
	sign func()
}

func (k slowKey) Sign(ctx context.Context, tx signer.Tx) ([]byte, chain.Hash, error) {
	k.sign()
	return k.Signer.Sign(ctx, tx)
}

// A signer that takes its time signs what is claimed together side by side: the last waits for one signature, and not
// for those before it.
func TestSlowSignerHoldsNobody(t *testing.T) {
	o := newQueueTest(t, nil)
	asked, together := make(chan struct{}, 3), make(chan struct{})
	o.claiming(3, slowKey{devKey(t), func() { asked <- struct{}{}; <-together }}, aBudget(&books{}, "1", "0"),
		marketAt(0))
	go func() {
		defer close(together)
		for range 3 {
			soon(t, asked)
		}
	}()
	var launched []int
	o.launch = func(_ context.Context, tasks []*Task) { launched = append(launched, len(tasks)) }
	for i := range byte(3) {
		o.enqueue(t, orderAt(i, uint64(i)))
	}
	if claimed := o.claimed(t); !slices.Equal(claimed, []uint64{0, 1, 2}) {
		t.Errorf("claimed those born at %v", claimed)
	}
	if !slices.Equal(launched, []int{3}) {
		t.Errorf("launched together: %v", launched)
	}
	if n, err := txstore.NewIntents(o.db).Depth(t.Context(), o.signer); err != nil || n != 0 {
		t.Errorf("%d are left, %v", n, err)
	}
}

// Where a task is always looked at the pass does not end, and what was spent is counted all the same.
func TestEndlessPassCounts(t *testing.T) {
	o := newQueueTest(t, nil)
	o.claiming(8, devKey(t), aBudget(&books{}, "1", "0"), marketAt(0))
	answer, counted, inner := make(chan struct{}), make(chan struct{}, 8), o.stages[0].Run
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	o.stages[0].Run = func(ctx context.Context, task *Task) (Verdict, error) {
		if task.Job().DueSinceMs == 1 {
			<-answer
		}
		return inner(ctx, task)
	}
	now, queued := time.Now(), make(chan struct{}, 1)
	o.deferred.clock = func() time.Time { now = now.Add(idle); return now }
	o.funds = counts(func() { counted <- struct{}{} })
	o.beside, o.checks.queued, o.heads = true, queued, headsAt(nowMs, time.Now())
	o.enqueue(t, orderAt(1, 1))
	passed := make(chan error)
	go func() { passed <- o.pass(t.Context()) }()
	soon(t, counted) // before anything is taken
	queued <- struct{}{}
	soon(t, counted)
	release()
	if err := <-passed; err != nil {
		t.Fatal(err)
	}
}
