package txmtest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// say enqueues a job and demands what becomes of it.
func (b *bench) say(j job.Job, want txm.Admission) {
	b.Helper()
	if got, err := b.Intents.Enqueue(b.Context(), j); err != nil || got != want {
		b.Fatalf("%s: %s, %v; want %s", j.ID, got, err, want)
	}
}

// NON-3.
func oneJob(b *bench) {
	n, signer := b.sender()
	j := anOrder(signer, 1)
	b.say(j, txm.NewAttempt)
	b.say(j, txm.Refreshed) // read twice from the topic
	b.say(found(j, 1000), txm.Refreshed)
	b.say(j, txm.Flying) // read again from further back
	b.depth(signer, 1)
	n.mustClaim(b.find(j))
	b.say(found(j, 2000), txm.Flying)
	b.depth(signer, 0)
}

// However many senders receive a job at the same moment. Many jobs, because the moment is short.
func busyQueue(b *bench) {
	signer := b.signer()
	for i := range 25 {
		j := anOrder(signer, byte(i))
		var born atomic.Int32
		var group sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			group.Go(func() {
				<-start
				a, err := b.Intents.Enqueue(b.Context(), j)
				if err != nil {
					b.Error(err)
				}
				if a == txm.NewAttempt {
					born.Add(1)
				}
			})
		}
		close(start)
		group.Wait()
		if born.Load() != 1 {
			b.Fatalf("%d attempts were born", born.Load())
		}
	}
}

// TIER-12: the next attempt needs the end of the last one, its cooling down, and a planner that publishes it
// afterwards.
func nextAttempt(b *bench) {
	n, signer := b.sender()
	j := anOrder(signer, 1)
	b.say(j, txm.NewAttempt)
	n.land(n.mustClaim(b.find(j)))
	b.say(found(j, 10_000), txm.Cooling)
	b.say(found(j, 10_001), txm.NewAttempt)
	second := b.find(j)
	if second.Attempt != 2 {
		b.Errorf("the next attempt is number %d", second.Attempt)
	}
	b.must(n.Intents.Skip(b.Context(), n.fence, second.ID,
		txm.Ending{Verdict: txm.Verdict{Outcome: job.DroppedRecovered}}))
	b.say(found(j, 10_002), txm.NewAttempt)
	if third := b.find(j); third.Attempt != 3 {
		b.Errorf("the next attempt is number %d", third.Attempt)
	}
}

// LIQ-6: the ratio that counts is the last one published, and the signer too.
func refresh(b *bench) {
	first, second := b.signer(), b.signer()
	old := aLiquidation(first, 1, 1)
	b.say(old, txm.NewAttempt)
	j := found(old, 1000)
	j.Ratio, j.Signer, j.DueSinceMs, j.Evidence.Reason = chain.Pow10(28), second, 77, "lower"
	b.say(j, txm.Refreshed)
	if got := b.find(j); !reflect.DeepEqual(got.Job, j) || got.Signer != second || got.Attempt != 1 ||
		got.ObservedMs != now+1000 {
		b.Errorf("the intent says %+v", got)
	}
	none(b, "still with the former signer", b.heads(first))
	b.say(old, txm.Flying)
	if got := b.find(j); got.Job.Evidence.Reason != "lower" {
		b.Error("older words won")
	}
}

// LIQ-6: class, ratio, age, id, as job.Before has it.
func order(b *bench) {
	signer := b.signer()
	const many = 40
	jobs, random := make([]job.Job, 0, many), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	for i := range many {
		j := anOrder(signer, byte(i))
		j.Class, j.Ratio, j.DueSinceMs = job.Class(1+random.IntN(5)), chain.U64(random.Uint64N(3)), random.Uint64N(3)
		if i%7 == 0 {
			j.Ratio = chain.Pow10(77).Add(j.Ratio)
		}
		jobs = append(jobs, j)
	}
	b.queue(jobs...)
	slices.SortFunc(jobs, func(a, c job.Job) int {
		if a.Before(c) {
			return -1
		}
		return 1
	})
	passed := make([]int64, 0, many)
	for i, want := range jobs {
		got, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Except: passed, Limit: 1})
		if err != nil || len(got) != 1 || got[0].Job.ID != want.ID {
			b.Fatalf("place %d: %+v, %v; want %s", i, got, err, want.ID)
		}
		passed = append(passed, got[0].ID)
	}
}

func paused(b *bench) {
	n, signer := b.sender()
	b.queue(anOrder(signer, 1))
	b.must(n.Intents.Pause(b.Context(), n.fence, "the node says \x00\xff"))
	none(b, "to do for a paused signer", b.heads(signer))
	if reason, err := b.Intents.Paused(b.Context(), signer); !strings.HasPrefix(reason, "the node says") || err != nil {
		b.Errorf("paused because %q, %v", reason, err)
	}
	b.depth(signer, 1)
}

func reports(b *bench) {
	n, signer := b.sender()
	intents := b.queue(anOrder(signer, 1), anOrder(signer, 2), anOrder(signer, 3))
	tx := n.mustClaim(intents[0])
	n.land(tx)
	const odd = "reason with \x00 and \xff and \\"
	refused := txm.Ending{Verdict: txm.Verdict{Outcome: job.Refused, Reason: odd}, Rest: txm.Rest{GivenUp: true}}
	b.must(n.Intents.Skip(b.Context(), n.fence, intents[1].ID, refused))
	ended := b.ended(signer, 2)
	done, skipped := ended[0], ended[1]
	if done.Intent.ID != intents[0].ID || done.Intent.Outcome != job.Done || done.Intent.State != txm.FinalOK ||
		done.Receipt == nil ||
		!done.Receipt.Same(minedAt(tx, 5, 0)) || done.Receipt.GasUsed != 20_000 || done.EndedAt.IsZero() ||
		!reflect.DeepEqual(done.Receipt.Settlement, settlement()) {
		b.Errorf("executed: %+v", done)
	}
	if skipped.Intent.Outcome != job.Refused || skipped.Intent.Reason != odd || !skipped.Intent.GivenUp ||
		done.Intent.GivenUp || skipped.Receipt != nil {
		b.Errorf("refused: %+v", skipped)
	}
	b.must(n.Intents.Reported(b.Context(), n.fence, []int64{done.Intent.ID}))
	if rest := b.ended(signer, 1)[0]; rest.Intent.ID != skipped.Intent.ID {
		b.Errorf("%+v", rest)
	}
	b.mustBeRefused("reporting what has not ended", n.Intents.Reported(b.Context(), n.fence, []int64{intents[2].ID}),
		txm.Moved)
}

// unregistered is a signer that no store knows.
var unregistered = chain.Address{0xff, 0xee}

// LIQ-6: whoever looks for work finds nothing that would be refused, so that the most urgent stays the first: no
// liquidation without a slot, none of an account that has one in flight, nothing whose key is in flight. While a
// liquidation waits for a slot nothing less urgent goes before it.
func fullHouse(b *bench) {
	n, signer := b.sender()
	first := aLiquidation(signer, 1, 1)
	again := anOrder(signer, 9)
	again.Key = first.Key
	queued := b.queue(first, aLiquidation(signer, 1, 2), aLiquidation(signer, 3, 1), aLiquidation(signer, 4, 1),
		again, anOrder(signer, 8))
	tx := n.mustClaim(queued[0])
	for most, want := range map[int]int{0: 3, 1: 0, 2: 2, 3: 3, 9: 3} { // the order is among them but where all is full
		heads, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Limit: 10, Liquidations: most})
		if err != nil || len(heads) != want {
			b.Errorf("at most %d liquidations: %d heads, %v; want %d: %+v", most, len(heads), err, want, heads)
		}
		for _, h := range heads {
			if h.Job.Key == first.Key || h.Job.Kind == job.Liquidation && h.Job.Account == first.Account {
				b.Errorf("%s would be refused", h.Job.ID)
			}
		}
	}
	n.land(tx)
	if heads := b.heads(signer); len(heads) != 5 {
		b.Errorf("%d heads when nothing is in flight any more, want 5", len(heads))
	}
}
