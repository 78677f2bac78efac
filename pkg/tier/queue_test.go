package tier

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/job"
)

// keeper is one keeper's queue, on a clock that the test moves.
type keeper struct {
	*Queue
	evidence *FailureDetector
	nowMs    uint64
}

func newKeeper(self, tiers int) *keeper {
	k := &keeper{evidence: NewEvidence(self, tiers, window)}
	k.Queue = NewQueue(Windows{Self: self, Window: window, Detector: k.evidence}, func() uint64 { return k.nowMs },
		300*time.Second, 60*time.Second)
	return k
}

func order(id string, dueSinceMs uint64) job.Job {
	return job.Job{ID: id, Kind: job.Order, Class: job.ClassMarketOrder, DueSinceMs: dueSinceMs}
}

func ids(waiting []Waiting) (all []string) {
	for _, w := range waiting {
		all = append(all, w.Job.ID)
	}
	return all
}

// TIER-11: a job waits for its window and is then handed out, once; one that is done waits no longer.
func TestQueueHandsOutInTheWindow(t *testing.T) {
	k := newKeeper(2, 3)
	k.nowMs = 1_000_000
	if w := k.Add(order("a", 1_000_000), 0); w.Turn.Mine || w.Turn.Owner != 1 || !k.Exists("a") {
		t.Fatalf("a backup has the turn of a new job: %+v", w.Turn)
	}
	k.Add(order("done", 1_000_000), 0)
	k.Add(order("late", 1_000_500), 0)
	if !k.Remove("done") || k.Remove("done") || k.Exists("done") || k.Len() != 2 {
		t.Error("a job was not removed, or twice")
	}
	for _, c := range []struct {
		nowMs uint64
		want  []string
	}{{1_029_999, nil}, {1_030_000, []string{"a"}}, {1_030_000, nil}, {1_040_000, []string{"late"}}, {1_999_000, nil}} {
		k.nowMs = c.nowMs
		if got := ids(k.Ready()); !slices.Equal(got, c.want) {
			t.Errorf("at %d: ready %v, want %v", c.nowMs, got, c.want)
		}
	}
	k.nowMs = 1_950_000 // back in time: nothing is asked twice, and the queue's time stands
	if w := k.Add(order("old", 1_960_000), 0); !w.Turn.Mine {
		t.Errorf("the queue's clock went back: %+v", w.Turn)
	}
	k.Add(order("waits", 1_990_000), 0)
	k.nowMs = 1_100_000 // further than any reorg: it was never so late
	if w := k.Add(order("new", 1_099_000), 0); w.Turn.Mine || w.Turn.Window != 0 {
		t.Errorf("the queue's clock still has an impossible time: %+v", w.Turn)
	}
	if k.nowMs = 1_130_000; !slices.Equal(ids(k.Ready()), []string{"new"}) || !k.Exists("waits") {
		t.Errorf("after the clock was set right %d wait", k.Len())
	}
}

// A job whose turn it is at once does not wait, and takes the words that waited out of the queue.
func TestQueueAddsOnlyWhatWaits(t *testing.T) {
	k := newKeeper(2, 3)
	k.nowMs = 1_000_000
	k.Add(order("a", 1_000_000), 0)
	k.nowMs = 1_030_500
	if w := k.Add(order("a", 1_000_000), 0); !w.Turn.Mine || w.Turn.Window != 1 || w.Turn.From != 1 {
		t.Errorf("%+v", w.Turn)
	}
	if k.Exists("a") || len(k.Ready()) != 0 {
		t.Error("it was handed out twice")
	}
}

// TIER-10, TIER-11: when the evidence changes, jobs that wait are asked about again at once; and what takes effect with
// a lag is asked for when it does.
func TestQueueHeedsEvidence(t *testing.T) {
	k := newKeeper(2, 3)
	k.nowMs = 60_000_000
	k.evidence.Born("probe", k.nowMs)
	for _, id := range []string{"a", "b"} {
		k.evidence.Born(id, k.nowMs+1)
		k.Add(order(id, k.nowMs+1), 0)
	}
	for _, id := range []string{"x", "y", "z"} {
		k.evidence.Born(id, k.nowMs-40_000)
		k.evidence.Executed(id, 3, k.nowMs+1000)
	}
	k.nowMs += 1500
	k.LookAgain()
	if got := ids(k.Ready()); got != nil || !k.evidence.Suspected(1) {
		t.Fatalf("others heed a suspicion 3 s later: ready %v", got)
	}
	k.nowMs += 2499
	if got := ids(k.Ready()); got != nil {
		t.Fatalf("too early: %v", got)
	}
	k.nowMs++
	if got := ids(k.Ready()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the Master is suspected, and %v is the first backup's", got)
	}
}

// TIER-11: what nobody executed in time leaves with a word, once an interval, and is not handed out.
func TestQueueEndsTheOld(t *testing.T) {
	k := newKeeper(2, 3)
	k.nowMs = 1_000_000
	k.Cleanup()
	k.Add(order("b", 1_000_000), 0)
	k.Add(order("a", 1_000_000), 0)
	k.Add(order("young", 1_060_000), 0)
	k.nowMs = 1_059_999
	if old := k.Cleanup(); old != nil {
		t.Errorf("before the interval: %v", ids(old))
	}
	k.nowMs = 1_304_000 // the jobs' second window of this tier, and past their age
	if got := ids(k.Ready()); got != nil {
		t.Errorf("too old, and handed out: %v", got)
	}
	if got := ids(k.Cleanup()); !slices.Equal(got, []string{"a", "b"}) || !k.Exists("young") {
		t.Errorf("ended %v", got)
	}
	if old := k.Cleanup(); old != nil {
		t.Errorf("ended twice: %v", ids(old))
	}
}

// TIER-7: under the policy delay a job's age counts from when this machine found it.
func TestQueueUnderDelay(t *testing.T) {
	nowMs := uint64(1000)
	q := NewQueue(Delay{Delay: 30 * time.Second}, func() uint64 { return nowMs }, 300*time.Second, 60*time.Second)
	q.Add(order("a", 99_000_000), 1000)
	nowMs = 30_999
	if got := q.Ready(); got != nil {
		t.Error("before its delay")
	}
	nowMs = 31_000
	if got := ids(q.Ready()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("ready %v", got)
	}
}

// Nothing is lost: whatever was added leaves the queue as ready, removed or ended, and only once, however time runs and
// whatever the evidence shows.
func TestQueueLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newKeeper(rapid.IntRange(1, 3).Draw(t, "self"), 3)
		k.nowMs = 1_000_000
		in := map[string]bool{} // the jobs that must be there
		left := func(why string, gone []string) {
			for _, id := range gone {
				if !in[id] {
					t.Fatalf("%s is %s, and was not in the queue", id, why)
				}
				delete(in, id)
			}
		}
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			k.nowMs += rapid.Uint64Range(0, 20_000).Draw(t, "pause")
			id := fmt.Sprint("j", rapid.IntRange(0, 9).Draw(t, "job"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				dueSince := k.nowMs - rapid.Uint64Range(0, 100_000).Draw(t, "age")
				k.evidence.Born(id, dueSince)
				delete(in, id)
				if !k.Add(order(id, dueSince), k.nowMs).Turn.Mine {
					in[id] = true
				}
			case 2:
				if k.Remove(id) {
					left("removed", []string{id})
				}
			case 3:
				k.evidence.Executed(id, rapid.IntRange(0, 3).Draw(t, "by"), k.nowMs)
				k.LookAgain()
			case 4:
				left("ready", ids(k.Ready()))
				left("ended", ids(k.Cleanup()))
			}
			if k.Len() != len(in) {
				t.Fatalf("step %d: %d in the queue, want %v", i, k.Len(), in)
			}
		}
		for range 500 {
			k.nowMs += 1000
			left("ready", ids(k.Ready()))
			left("ended", ids(k.Cleanup()))
		}
		if len(in) > 0 || k.Len() > 0 {
			t.Fatalf("never left: %v", in)
		}
	})
}

// TIER-9: keepers whose heads are at most the guard apart, each handing jobs out of its own queue at its own pace,
// never hold one at the same moment: what one was given it may send until its turn ends by its own clock.
func TestQueuesShareNoJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tiers = 3
		keepers, lag := make([]*keeper, tiers), make([]uint64, tiers)
		for i := range keepers {
			keepers[i] = newKeeper(i+1, tiers)
			lag[i] = rapid.Uint64Range(0, uint64(Guard.Milliseconds())).Draw(t, "lag")
		}
		dueSince := rapid.Uint64Range(1_000_000, 1_060_000).Draw(t, "due since")
		var until uint64 // real time up to which somebody may send
		hold := func(nowMs uint64, i int, w Waiting) {
			if nowMs < until {
				t.Fatalf("at %d tier %d is given the job, and another may send until %d", nowMs-dueSince, i+1,
					until-dueSince)
			}
			until = w.Turn.EndsMs + lag[i]
		}
		said := make([]bool, tiers)
		for now := dueSince; now < dueSince+250_000; now += rapid.Uint64Range(1, 9000).Draw(t, "pace") {
			for i, k := range keepers {
				k.nowMs = now - lag[i]
				if !said[i] && rapid.Bool().Draw(t, "hears") {
					said[i] = true
					if w := k.Add(order("a", dueSince), now); w.Turn.Mine {
						hold(now, i, w)
					}
				}
				for _, w := range k.Ready() {
					hold(now, i, w)
				}
			}
		}
	})
}
