package preflight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
)

// callsOf is a node with two endpoints that answers each simulated call with the next answer, and with success when
// there is none left. It counts them.
type callsOf struct {
	sources
	mu      sync.Mutex
	answers []error
	calls   int
	wait    chan struct{} // not nil: nothing is answered before it is closed
}

func (n *callsOf) Simulate(ctx context.Context, _, _ chain.Address, _ []byte, _ uint64, _ perp.Uint) (evm.Source,
	error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if n.wait != nil {
		select {
		case <-n.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if len(n.answers) == 0 {
		return "a", nil
	}
	err := n.answers[0]
	n.answers = n.answers[1:]
	return "a", err
}

func (n *callsOf) made() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls
}

// earlyTest is a checker whose jobs are liquidations of positions that are there.
type earlyTest struct {
	*Checker
	node  *callsOf
	state *lookedUp
	now   time.Time
}

func newEarlyTest(t *testing.T, answers ...error) *earlyTest {
	t.Helper()
	o := &earlyTest{node: &callsOf{sources: sources{names: []evm.Source{"a", "b"}}, answers: answers},
		state: &lookedUp{written: written{positions: map[chain.Hash]perp.Position{}}}, now: time.Now()}
	for n := range byte(8) {
		key := chain.Hash{n}
		o.state.positions[key] = perp.Position{PositionKey: key, Status: perp.Active, Changes: 1}
	}
	p := New(Config{Venue: gmx.Config{LiquidationHandler: chain.Address{7}}}, Parts{Node: o.node, State: o.state,
		Head: horizonAt(nowMs, o.now), Quotes: quotesOf(reportAt(weth, nowMs)), Log: zerolog.Nop(),
		Clock: func() time.Time { return o.now }, Metrics: NewMetrics(prometheus.NewRegistry())})
	o.Checker = p.Checker(chain.Address{1}, func() {})
	t.Cleanup(o.Close)
	return o
}

// readerOf is a checker of which only reading is asked.
func readerOf(s State) *Checker {
	return New(Config{}, Parts{State: s, Metrics: NewMetrics(prometheus.NewRegistry())}).
		Checker(chain.Address{}, func() {})
}

// liquidationOf is a job that was found just now.
func liquidationOf(n byte) job.Job {
	key := chain.Hash{n}
	return job.Job{ID: job.LiquidationID(key, 1), Kind: job.Liquidation, Key: key, Tokens: []chain.Address{weth},
		Evidence: job.Evidence{Block: chain.BlockRef{Number: 100, TimeMs: nowMs}}}
}

// early looks at a job early, and waits for the end of it.
func (o *earlyTest) early(j job.Job) {
	o.Early(j, true)
	o.Checker.early.mu.Lock()
	l := o.Checker.early.looks[j.ID]
	o.Checker.early.mu.Unlock()
	if l != nil {
		<-l.answered
	}
}

// road leads a task as far as the road does, and returns what it came to, and how many looks and calls it made.
func (o *earlyTest) road(t *testing.T, task *txmanager.Task) (v txmanager.Verdict, looks, calls int) {
	t.Helper()
	looks, calls = len(o.state.asked), o.node.made()
	if err := o.Read(t.Context(), []*txmanager.Task{task}); err != nil {
		t.Fatal(err)
	}
	v, err := o.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return v, len(o.state.asked) - looks, o.node.made() - calls
}

func (o *earlyTest) counted(result string) int {
	return int(testutil.ToFloat64(o.Metrics.early.WithLabelValues(result)))
}

func taskOf(j job.Job) *txmanager.Task {
	return &txmanager.Task{Intent: txm.Intent{ID: 1, Attempt: 1, Job: j}}
}

// What was asked while a job was being stored is not asked again, once: a second attempt asks for itself.
func TestEarlyAnswersAreTaken(t *testing.T) {
	o, j := newEarlyTest(t), liquidationOf(1)
	o.early(j)
	task := taskOf(j)
	v, looks, calls := o.road(t, task)
	if v.Kind != txmanager.Onward || looks != 0 || calls != 0 || len(task.Call.Data) == 0 || task.Call.Gas == 0 {
		t.Errorf("%+v with %+v, after %d looks and %d calls", v, task.Call, looks, calls)
	}
	if v, looks, calls := o.road(t, taskOf(j)); v.Kind != txmanager.Onward || looks != 1 || calls != 1 {
		t.Errorf("again: %+v after %d looks and %d calls", v, looks, calls)
	}
	if o.counted("used") != 1 || o.counted("outdated")+o.counted("unsuccessful")+o.counted("unused") != 0 {
		t.Errorf("%d counted as used", o.counted("used"))
	}
}

// LIQ-7: an answer to anything else than what would be asked now is not used, whatever has changed since: the head, a
// price report, the gas limit, or the time.
func TestStaleEarlyAnswersAreNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *earlyTest, task *txmanager.Task)
		looks  int // that the road makes
	}{
		"another head": {func(o *earlyTest, _ *txmanager.Task) {
			o.Head.Set(chain.BlockRef{Number: 101, Hash: chain.Hash{2}, TimeMs: nowMs}, time.Now())
		}, 1},
		"another branch": {func(o *earlyTest, _ *txmanager.Task) {
			o.Head.Set(chain.BlockRef{Number: 100, Hash: chain.Hash{3}, TimeMs: nowMs}, time.Now())
		}, 1},
		"too long ago": {func(o *earlyTest, _ *txmanager.Task) { o.now = o.now.Add(earlyFresh + 1) }, 1},
		"a new report": {func(o *earlyTest, _ *txmanager.Task) {
			newer := reportAt(weth, nowMs+100)
			newer.Data = []byte("signed a moment later")
			o.Quotes.Add(newer)
		}, 0},
		"more gas": {func(_ *earlyTest, task *txmanager.Task) { task.Intent.Tries = 1 }, 0},
	} {
		o, j := newEarlyTest(t), liquidationOf(1)
		o.early(j)
		task := taskOf(j)
		c.change(o, task)
		if v, looks, calls := o.road(t, task); v.Kind != txmanager.Onward || looks != c.looks || calls != 1 {
			t.Errorf("%s: %+v after %d looks and %d calls", name, v, looks, calls)
		}
		if o.counted("outdated") != 1 || o.counted("used") != 0 {
			t.Errorf("%s: %d are used, %d outdated", name, o.counted("used"), o.counted("outdated"))
		}
	}
}

// The head may change between the rows and the call.
func TestEarlyAnswerGrowsOldOnTheRoad(t *testing.T) {
	o, j := newEarlyTest(t), liquidationOf(1)
	o.early(j)
	task := taskOf(j)
	if err := o.Read(t.Context(), []*txmanager.Task{task}); err != nil || len(o.state.asked) != 1 {
		t.Fatalf("%d looks, %v", len(o.state.asked), err)
	}
	o.Head.Set(chain.BlockRef{Number: 101, Hash: chain.Hash{2}, TimeMs: nowMs}, time.Now())
	if v, err := o.Run(t.Context(), task); err != nil || v.Kind != txmanager.Onward || o.node.made() != 2 {
		t.Errorf("%+v, %v after %d calls", v, err, o.node.made())
	}
}

// TIER-5: what one endpoint said early holds no job back and ends none: it is asked on the road, where a second
// endpoint has to say the same.
func TestEarlyRevertEndsNothing(t *testing.T) {
	gone := revertWith("EmptyOrder()")
	o, j := newEarlyTest(t, gone), liquidationOf(1)
	o.early(j)
	if v, _, calls := o.road(t, taskOf(j)); v.Kind != txmanager.Onward || calls != 1 {
		t.Errorf("it would succeed now: %+v after %d calls", v, calls)
	}
	o = newEarlyTest(t, gone, gone)
	o.early(j)
	if v, _, calls := o.road(t, taskOf(j)); v.Kind != txmanager.Waiting || calls != 1 {
		t.Errorf("it is said again: %+v after %d calls", v, calls)
	}
	o = newEarlyTest(t, errors.New("no answer"))
	o.early(j)
	if v, _, calls := o.road(t, taskOf(j)); v.Kind != txmanager.Onward || calls != 1 ||
		o.counted("unsuccessful") != 1 {
		t.Errorf("nobody answered: %+v after %d calls", v, calls)
	}
}

// Rows that are not there, or that say that a job is done, are read again before it ends: a branch that was left may
// have been undone since.
func TestEarlyRowsEndNothing(t *testing.T) {
	for name, spoil := range map[string]func(*earlyTest, chain.Hash){
		"absent": func(o *earlyTest, key chain.Hash) { delete(o.state.positions, key) },
		"closed": func(o *earlyTest, key chain.Hash) {
			o.state.positions[key] = perp.Position{PositionKey: key, Status: perp.Closed, Changes: 2}
		},
	} {
		o, j := newEarlyTest(t), liquidationOf(1)
		there := o.state.positions[j.Key]
		spoil(o, j.Key)
		o.early(j)
		o.state.positions[j.Key], o.state.final = there, 100
		if v, _, calls := o.road(t, taskOf(j)); v.Kind != txmanager.Onward || calls != 1 {
			t.Errorf("%s: %+v after %d calls", name, v, calls)
		}
	}
}

// The road waits for a call that is under way, and no longer than it may.
func TestRoadJoinsAnEarlyCall(t *testing.T) {
	o, j := newEarlyTest(t), liquidationOf(1)
	o.node.wait = make(chan struct{})
	o.Early(j, true)
	task, done := taskOf(j), make(chan txmanager.Verdict)
	if err := o.Read(t.Context(), []*txmanager.Task{task}); err != nil {
		t.Fatal(err)
	}
	go func() {
		v, _ := o.Run(t.Context(), task)
		done <- v
	}()
	close(o.node.wait)
	if v := <-done; v.Kind != txmanager.Onward || o.node.made() != 1 {
		t.Errorf("%+v after %d calls", v, o.node.made())
	}
}

// A call that is outdated while it is under way is not waited for, and what it comes to is nobody's.
func TestOutdatedCallIsNotAwaited(t *testing.T) {
	o, j := newEarlyTest(t), liquidationOf(1)
	o.node.wait = make(chan struct{})
	o.Early(j, true)
	if err := o.Read(t.Context(), []*txmanager.Task{taskOf(j)}); err != nil {
		t.Fatal(err)
	}
	o.Head.Set(chain.BlockRef{Number: 101, Hash: chain.Hash{3}, TimeMs: nowMs}, time.Now())
	if said, is := o.Checker.early.answer(t.Context(), j.ID, txmanager.Call{}); is || said != (callResult{}) {
		t.Errorf("answered with %+v", said)
	}
	close(o.node.wait)
}

// Only what is new, of now, and to be taken at once is looked at early, and few jobs at a time: a node is not asked
// twice about what waits.
func TestFewJobsAreLookedAtEarly(t *testing.T) {
	o := newEarlyTest(t)
	waits, old := liquidationOf(1), liquidationOf(2)
	old.Evidence.Block.TimeMs = nowMs - uint64(earlyMaxAge.Milliseconds()) - 1
	o.Early(waits, false)
	o.early(waits) // said again
	o.early(old)
	if o.node.made() != 0 || len(o.state.asked) != 0 {
		t.Fatalf("%d calls, %d looks", o.node.made(), len(o.state.asked))
	}
	for n := range byte(mostEarly + 2) {
		o.early(liquidationOf(n + 2)) // the first of them was said before
	}
	if o.node.made() != mostEarly {
		t.Errorf("%d calls at a time", o.node.made())
	}
	o.now = o.now.Add(earlyFresh + 1)
	o.early(liquidationOf(0))
	if o.node.made() != mostEarly+1 || o.counted("unused") != mostEarly {
		t.Errorf("%d calls, %d were unused", o.node.made(), o.counted("unused"))
	}
}
