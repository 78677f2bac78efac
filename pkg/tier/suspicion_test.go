package tier

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TIER-10: the next tier stands in for one that is suspected, every other window stays whose it is, and if all are
// suspected, none is.
func TestNextTierStandsIn(t *testing.T) {
	for _, c := range []struct {
		suspected []int
		owners    []int // of the windows from 0
	}{
		{nil, []int{1, 2, 3, 1}},
		{[]int{1}, []int{2, 2, 3, 2}},
		{[]int{2}, []int{1, 3, 3, 1}},
		{[]int{3}, []int{1, 2, 1, 1}},
		{[]int{1, 2}, []int{3, 3, 3, 3}},
		{[]int{2, 3}, []int{1, 1, 1, 1}},
		{[]int{1, 2, 3}, []int{1, 2, 3, 1}},
	} {
		e := NewEvidence(4, 3, window)
		for _, tier := range c.suspected {
			e.set(tier, true, 0)
		}
		for n, want := range c.owners {
			if got := e.Owner("job", uint64(n), 10_000); got != want {
				t.Errorf("suspected %v: window %d is tier %d's, want %d", c.suspected, n, got, want)
			}
		}
	}
}

// TIER-16: a takeover names the tier that was to act before, and whether it was passed over.
func TestFromWhomATurnIsTaken(t *testing.T) {
	for _, c := range []struct {
		suspected  []int
		n          uint64
		from       int
		substitute bool
	}{
		{nil, 0, 0, false}, {nil, 1, 1, false}, {nil, 3, 3, false},
		{[]int{1}, 0, 1, true}, {[]int{1}, 1, 1, false}, {[]int{1}, 2, 2, false}, {[]int{1, 2}, 1, 2, true},
	} {
		e := NewEvidence(3, 3, window)
		for _, tier := range c.suspected {
			e.set(tier, true, 0)
		}
		got := Windows{Self: 3, Window: window, Detector: e}.Turn(Job{ID: "job", DueSinceMs: 10_000}, 10_001+c.n*30_000)
		if got.From != c.from || got.Substitute != c.substitute {
			t.Errorf("suspected %v: window %d is taken from tier %d, passed over: %v", c.suspected, c.n, got.From,
				got.Substitute)
		}
	}
}

// TIER-10: after an outage of all, the windows of the outage accuse nobody who has executed anything since.
func TestWindowsBeforeASignOfLifeAccuseNobody(t *testing.T) {
	const restart = 180_000
	e := NewEvidence(2, 3, window)
	for n := range uint64(9) {
		e.Born(fmt.Sprint(n), 60_000+n*1000) // their windows of all tiers have passed by then
	}
	e.Executed("0", 1, restart)
	for n := range 4 {
		e.Executed(fmt.Sprint(n+1), 3, restart)
	}
	if e.Suspected(1) || e.Missed(1) != 0 {
		t.Errorf("the Master missed %d although it lives", e.Missed(1))
	}
	if !e.Suspected(2) {
		t.Error("tier 2, which has not executed anything since, is not suspected")
	}
	for n := range uint64(3) { // the Master falls silent once more
		id := "later " + fmt.Sprint(n)
		e.Born(id, restart+1+n)
		e.Executed(id, 3, restart+31_000)
	}
	if !e.Suspected(1) {
		t.Error("windows after its last sign of life do not accuse the Master")
	}
}

// TIER-10: whoever makes a simulated call that succeeds does not accuse itself of the windows in which it stood in for
// others.
func TestNobodyAccusesItself(t *testing.T) {
	e := NewEvidence(3, 3, window)
	e.set(1, true, 0)
	e.set(2, true, 0)
	e.Born("probe", 60_000)
	for n := range 4 {
		id := fmt.Sprint(n)
		e.Born(id, 60_001)
		e.Feasible(id, 0, 91_000)
	}
	if e.Suspected(3) {
		t.Error("it did")
	}
}

// span is a time (Unix ms) for which a tier is suspected by the facts.
type span struct {
	tier     int
	from, to uint64
}

// someSpans makes up when which of the tiers are suspected, each for times of its own.
func someSpans(random *rand.Rand, tiers int) (all []span) {
	for tier := 1; tier <= tiers; tier++ {
		at := uint64(0)
		for range random.IntN(4) {
			from := at + 1 + random.Uint64N(120_000)
			at = from + 1 + random.Uint64N(120_000)
			all = append(all, span{tier, from, at})
		}
	}
	return all
}

// believing returns the policy of a keeper that has learnt of suspicions.
func believing(self, tiers int, spans []span) Windows {
	e := NewEvidence(self, tiers, window)
	for _, s := range spans {
		e.changes = append(e.changes, change{s.from, s.tier, true}, change{s.to, s.tier, false})
	}
	slices.SortStableFunc(e.changes, func(a, b change) int { return cmp.Compare(a.atMs, b.atMs) })
	return Windows{Self: self, Window: window, Detector: e}
}

// plainly is the rule read word for word, from times of suspicion instead of changes.
func plainly(self, tiers int, spans []span, age, now uint64) (mine bool) {
	var willing []int
	for n := range 2 * tiers { // those by the clock from this window on
		tier := (int(age/30_000)+n)%tiers + 1
		suspected := slices.ContainsFunc(spans, func(s span) bool {
			if tier == self {
				return s.tier == tier && s.from <= now && now < s.to+3000
			}
			return s.tier == tier && s.from+3000 <= now && now < s.to
		})
		if !suspected {
			willing = append(willing, tier)
		}
	}
	willing = append(willing, int(age/30_000)%tiers+1)
	return willing[0] == self && age%30_000 < 27_000
}

// TIER-9, TIER-10: a turn is what the rule says, at every moment; and until it is to be asked for again, or a fact is
// learnt, it stays so.
func TestTurnsAreThoseOfThePlainRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := rapid.IntRange(1, 5).Draw(t, "tiers")
		self := rapid.IntRange(1, tiers).Draw(t, "self")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		spans := someSpans(random, tiers)
		w := believing(self, tiers, spans)
		j := Job{ID: "job", DueSinceMs: random.Uint64N(400_000)}
		now := j.DueSinceMs + random.Uint64N(300_000)
		if len(spans) > 0 && rapid.Bool().Draw(t, "soon after a fact") {
			s := spans[random.IntN(len(spans))]
			now = max(j.DueSinceMs, []uint64{s.from, s.to}[random.IntN(2)]+random.Uint64N(4000))
		}
		turn := w.Turn(j, now)
		if want := plainly(self, tiers, spans, now-j.DueSinceMs, now); turn.Mine != want {
			t.Fatalf("at age %d: mine is %v, want %v", now-j.DueSinceMs, turn.Mine, want)
		}
		until := turn.NextMs
		if turn.Mine {
			until = turn.EndsMs
		}
		if until <= now {
			t.Fatalf("to be asked for again at %d, and it is %d", until, now)
		}
		for _, s := range spans { // what is not a fact yet is not known yet
			for _, at := range []uint64{s.from, s.to} {
				if at > now {
					until = min(until, at)
				}
			}
		}
		later := now + random.Uint64N(until-now)
		if got := w.Turn(j, later); got.Mine != turn.Mine {
			t.Fatalf("mine is %v at %d and %v at %d, before %d", turn.Mine, now, got.Mine, later, until)
		}
	})
}

// TIER-1, TIER-10: suspecting a keeper that is down takes no turn from any that is up, at any moment of a job's life,
// whatever else is suspected. So the first moment at which somebody who is up may act comes no later for it.
func TestSuspectingTheDownDelaysNoJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := rapid.IntRange(2, 5).Draw(t, "tiers")
		down := rapid.IntRange(1, tiers).Draw(t, "down")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		spans := someSpans(random, tiers)
		more := append(slices.Clone(spans), span{down, random.Uint64N(400_000), 1 << 40})
		dueSince := random.Uint64N(400_000)
		const step = 250
		first := map[bool]uint64{}
		for self := 1; self <= tiers; self++ {
			if self == down {
				continue
			}
			without, with := believing(self, tiers, spans), believing(self, tiers, more)
			for now := dueSince; now < dueSince+300_000; now += step {
				a, b := without.Turn(Job{ID: "job", DueSinceMs: dueSince}, now).Mine,
					with.Turn(Job{ID: "job", DueSinceMs: dueSince}, now).Mine
				if a && !b {
					t.Fatalf("tier %d loses its turn at age %d because tier %d, which is down, is suspected", self,
						now-dueSince, down)
				}
				for suspected, mine := range map[bool]bool{false: a, true: b} {
					if at, known := first[suspected]; mine && (!known || now < at) {
						first[suspected] = now
					}
				}
			}
		}
		if at, known := first[false]; known && first[true] > at {
			t.Fatalf("first allowed at age %d, and %d with the suspicion", at-dueSince, first[true]-dueSince)
		}
	})
}

// fact is a job that was born, or executed by a tier.
type fact struct {
	atMs     uint64
	executed bool
	id       string
	by       int
}

// someFacts makes up jobs, and who executed them at what age, in the chain's order. One tier after the other falls
// silent for a while.
func someFacts(random *rand.Rand, tiers int) (facts []fact) {
	at := uint64(600_000)
	silent := 0
	for i := range 60 {
		if i%12 == 0 {
			silent = random.IntN(tiers + 1)
		}
		id := fmt.Sprint(i)
		at += random.Uint64N(8_000)
		facts = append(facts, fact{atMs: at, id: id})
		if by := random.IntN(tiers + 1); by != silent {
			facts = append(facts, fact{at + random.Uint64N(95_000), true, id, by})
		}
	}
	slices.SortStableFunc(facts, func(a, b fact) int { return cmp.Compare(a.atMs, b.atMs) })
	return facts
}

// TIER-9, TIER-10: keepers that see the chain's facts up to their own heads, at most the guard apart, never both own a
// job, whatever its age and whoever is suspected or cleared meanwhile, and whenever each hears that it was renewed.
func TestNoTwoOwnersWhoeverIsSuspected(t *testing.T) {
	changes := 0
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		tiers := rapid.IntRange(2, 4).Draw(t, "tiers")
		facts := someFacts(random, tiers)
		crowd := make([]watcher, tiers)
		for i := range crowd {
			crowd[i].Windows = Windows{Self: i + 1, Window: window, Detector: NewEvidence(i+1, tiers, window)}
			crowd[i].behind = random.Uint64N(uint64(Guard.Milliseconds()) + 1)
			crowd[i].late = random.Uint64N(2000)
		}
		var moments []uint64 // soon after each fact
		for _, f := range facts {
			moments = append(moments, f.atMs+random.Uint64N(8_000), f.atMs+297_000+random.Uint64N(8_000))
		}
		slices.Sort(moments)
		for _, world := range moments {
			for i := range crowd {
				crowd[i].read(facts, world)
			}
			for _, f := range facts {
				if owners := ownersOf(f, world, crowd); len(owners) > 1 {
					t.Fatalf("the job born at %d is owned by %v at %d", f.atMs, owners, world)
				}
			}
		}
		changes += len(crowd[0].Detector.changes)
	})
	if changes < 50 {
		t.Errorf("suspicions came and went %d times in all: that shows nothing", changes)
	}
}

// watcher is a keeper whose head is behind the world (ms), how many of the facts it has learnt, and how late (ms) it
// hears of renewals.
type watcher struct {
	Windows
	behind uint64
	late   uint64
	knows  int
}

func (w *watcher) read(facts []fact, world uint64) {
	for ; w.knows < len(facts) && facts[w.knows].atMs <= world-w.behind; w.knows++ {
		w.Detector.learn(facts[w.knows])
	}
}

// ownersOf are the keepers that think a job that all of them know theirs.
func ownersOf(f fact, world uint64, crowd []watcher) (owners []int) {
	if f.executed || f.atMs+uint64(Guard.Milliseconds()) > world {
		return nil
	}
	for _, w := range crowd {
		j := lifeAt(f.atMs, world-w.late)
		j.ID = f.id
		if w.Turn(j, world-w.behind).Mine {
			owners = append(owners, w.Self)
		}
	}
	return owners
}

func (e *FailureDetector) learn(f fact) {
	if f.executed {
		e.Executed(f.id, f.by, f.atMs)
	} else {
		e.Born(f.id, f.atMs)
	}
}
