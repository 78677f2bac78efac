package txmtest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txm"
)

// say enqueues a job and demands what becomes of it.
func (b *bench) say(t *testing.T, j job.Job, at time.Time, want txm.Admission) {
	t.Helper()
	if got, err := b.Intents.Enqueue(t.Context(), j, at); err != nil || got != want {
		t.Fatalf("%s: %s, %v; want %s", j.ID, got, err, want)
	}
}

// NON-3.
func oneJob(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	j, at := anOrder(signer, 1), time.Now()
	b.say(t, j, at, txm.NewArm)
	b.say(t, j, at, txm.Flying) // read twice from the topic
	b.say(t, j, at.Add(time.Second), txm.Refreshed)
	if depth, err := b.Intents.Depth(t.Context(), signer); depth != 1 || err != nil {
		t.Errorf("%d queued, %v", depth, err)
	}
	n.mustClaim(t, b.find(t, j).ID)
	b.say(t, j, at.Add(2*time.Second), txm.Flying)
	if depth, err := b.Intents.Depth(t.Context(), signer); depth != 0 || err != nil {
		t.Errorf("%d queued, %v", depth, err)
	}
}

func crowdedQueue(b *bench) {
	t := b.t
	signer := b.signer(t)
	j := anOrder(signer, 1)
	var born atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			a, err := b.Intents.Enqueue(t.Context(), j, time.Now())
			if err != nil {
				t.Error(err)
			}
			if a == txm.NewArm {
				born.Add(1)
			}
		})
	}
	group.Wait()
	if born.Load() != 1 {
		t.Errorf("%d arms were born", born.Load())
	}
}

// TIER-12: the next arm needs the end of the last one, its cooling down, and a planner that says so afterwards.
func nextArm(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	j, at := anOrder(signer, 1), time.Now()
	b.say(t, j, at, txm.NewArm)
	n.land(t, n.mustClaim(t, b.find(t, j).ID))
	b.say(t, j, at.Add(settled/2), txm.Cooling)
	b.say(t, j, at.Add(settled+30*time.Second), txm.NewArm)
	second := b.find(t, j)
	if second.Arm != 2 {
		t.Errorf("the next arm is number %d", second.Arm)
	}
	must(t, n.Intents.Skip(t.Context(), n.fence, second.ID, txm.Ending{Outcome: job.DroppedRecovered, Reason: "recovered"}))
	b.say(t, j, time.Now().Add(time.Minute), txm.NewArm)
	if third := b.find(t, j); third.Arm != 3 {
		t.Errorf("the next arm is number %d", third.Arm)
	}
}

// LIQ-6: the ratio that counts is the last one said, and the signer too.
func refresh(b *bench) {
	t := b.t
	first, second := b.signer(t), b.signer(t)
	j, at := aLiquidation(first, 1, 1), time.Now()
	b.say(t, j, at, txm.NewArm)
	j.Ratio, j.Signer, j.BirthMs, j.Evidence.Reason = perp.Pow10(28), second, 77, "lower"
	b.say(t, j, at.Add(time.Second), txm.Refreshed)
	if got := b.find(t, j); !reflect.DeepEqual(got.Job, j) || got.Signer != second || got.Arm != 1 ||
		!got.SaidAt.Equal(at.Add(time.Second).Truncate(time.Microsecond)) {
		t.Errorf("the intent says %+v", got)
	}
	if head, err := b.Intents.Head(t.Context(), first, nil); head != nil || err != nil {
		t.Errorf("the former signer still has %+v, %v", head, err)
	}
	j.Evidence.Reason = "older"
	b.say(t, j, at, txm.Flying)
	if got := b.find(t, j); got.Job.Evidence.Reason != "lower" {
		t.Error("older words won")
	}
}

// LIQ-6: class, ratio, age, id, as job.Before has it.
func order(b *bench) {
	t := b.t
	signer := b.signer(t)
	const many = 40
	jobs, random := make([]job.Job, 0, many), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	for i := range many {
		j := anOrder(signer, byte(i))
		j.Class, j.Ratio, j.BirthMs = job.Class(1+random.IntN(5)), perp.U64(random.Uint64N(3)), random.Uint64N(3)
		if i%7 == 0 {
			j.Ratio = perp.Pow10(77).Add(j.Ratio)
		}
		jobs = append(jobs, j)
	}
	b.queue(t, jobs...)
	slices.SortFunc(jobs, func(a, c job.Job) int {
		if a.Before(c) {
			return -1
		}
		return 1
	})
	passed := make([]int64, 0, many)
	for i, want := range jobs {
		got, err := b.Intents.Head(t.Context(), signer, passed)
		if err != nil || got == nil || got.Job.ID != want.ID {
			t.Fatalf("place %d: %+v, %v; want %s", i, got, err, want.ID)
		}
		passed = append(passed, got.ID)
	}
}

func paused(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	b.queue(t, anOrder(signer, 1))
	must(t, n.Intents.Pause(t.Context(), n.fence, "looks odd"))
	if head, err := b.Intents.Head(t.Context(), signer, nil); head != nil || err != nil {
		t.Errorf("a paused signer has %+v to do, %v", head, err)
	}
	if depth, err := b.Intents.Depth(t.Context(), signer); depth != 1 || err != nil {
		t.Errorf("%d queued, %v", depth, err)
	}
}

func reports(b *bench) {
	t := b.t
	signer := b.signer(t)
	n := b.node(t, signer)
	intents := b.queue(t, anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3))
	tx := n.mustClaim(t, intents[0].ID)
	n.land(t, tx)
	const odd = "reason with \x00 and \xff and \\"
	must(t, n.Intents.Skip(t.Context(), n.fence, intents[1].ID, txm.Ending{Outcome: job.Refused, Reason: odd}))
	ended, err := b.Intents.Unreported(t.Context(), signer, 10)
	if err != nil || len(ended) != 2 {
		t.Fatalf("%+v, %v", ended, err)
	}
	done, skipped := ended[0], ended[1]
	if done.Intent.ID != intents[0].ID || done.Intent.Outcome != job.Done || done.Intent.State != txm.FinalOK || done.Receipt == nil ||
		!done.Receipt.Same(minedAt(tx, 5, 0)) || done.Receipt.GasUsed != 20_000 || done.EndedAt.IsZero() {
		t.Errorf("executed: %+v", done)
	}
	if skipped.Intent.Outcome != job.Refused || skipped.Intent.Reason != odd || skipped.Receipt != nil {
		t.Errorf("refused: %+v", skipped)
	}
	must(t, n.Intents.Reported(t.Context(), n.fence, []int64{done.Intent.ID}))
	if rest, err := b.Intents.Unreported(t.Context(), signer, 10); err != nil || len(rest) != 1 || rest[0].Intent.ID != skipped.Intent.ID {
		t.Errorf("%+v, %v", rest, err)
	}
	mustBeRefused(t, "reporting what has not ended", n.Intents.Reported(t.Context(), n.fence, []int64{intents[2].ID}), txm.Moved)
}

// unregistered is a signer that no store knows.
var unregistered = chain.Address{0xff, 0xee}
