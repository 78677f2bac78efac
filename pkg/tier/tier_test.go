package tier

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

const window = 30 * time.Second

// TIER-1, TIER-9: [0,30) Master, [30,60) Backup-1, [60,90) Backup-2, and again; nothing in a window's last 3 s.
func TestWindows(t *testing.T) {
	const dueSince = 1_000_000
	for _, c := range []struct{ age, owner uint64 }{
		{0, 1}, {26_999, 1}, {27_000, 0}, {29_999, 0}, {30_000, 2}, {56_999, 2}, {57_000, 0}, {60_000, 3}, {86_999, 3},
		{90_000, 1}, {290_000, 1},
	} {
		for self := 1; self <= 3; self++ {
			w := Windows{Self: self, Window: window, Detector: NewEvidence(self, 3, window)}
			got := w.Turn(Job{ID: "a", DueSinceMs: dueSince}, dueSince+c.age)
			if want := uint64(self) == c.owner; got.Mine != want {
				t.Errorf("age %d: tier %d has the turn: %v", c.age, self, got.Mine)
			}
			if got.Mine && got.EndsMs != dueSince+c.age/30_000*30_000+27_000 {
				t.Errorf("age %d: the turn ends at %d", c.age, got.EndsMs-dueSince)
			}
			if !got.Mine && got.NextMs <= dueSince+c.age {
				t.Errorf("age %d: tier %d is to ask again at %d", c.age, self, got.NextMs-dueSince)
			}
		}
	}
}

// A job whose due time lies ahead of the head, because its report is newer than the newest block, is the Master's.
func TestDueTimeAheadOfHead(t *testing.T) {
	w := Windows{Self: 1, Window: window, Detector: NewEvidence(1, 3, window)}
	if !w.Turn(Job{ID: "a", DueSinceMs: 5000}, 4000).Mine {
		t.Error("not the Master's")
	}
}

// TIER-7: the policy delay, with its fault: after a common restart Master and first backup both fire at 30 s.
func TestDelay(t *testing.T) {
	master := Delay{RecoveryBuffer: 30 * time.Second}
	backup := Delay{Delay: 30 * time.Second}
	for _, c := range []struct {
		found, now     uint64
		master, backup bool
	}{
		{1000, 1000, false, false}, // recovering
		{1000, 31_000, true, true},
		{100_000, 100_000, true, false},
		{100_000, 129_999, true, false},
		{100_000, 130_000, true, true},
	} {
		j := Job{ID: "a", FoundMs: c.found}
		if got := master.Turn(j, c.now).Mine; got != c.master {
			t.Errorf("found at %d, now %d: Master %v", c.found, c.now, got)
		}
		if got := backup.Turn(j, c.now).Mine; got != c.backup {
			t.Errorf("found at %d, now %d: backup %v", c.found, c.now, got)
		}
	}
}

// TIER-9: however far apart the heads of two keepers are, up to the guard, they never both own a job, nor where they
// hear at different moments that it was renewed.
func TestNoTwoOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := rapid.IntRange(2, 5).Draw(t, "tiers")
		window := rapid.SampledFrom(windows).Draw(t, "window")
		dueSince := rapid.Uint64Range(10, 1000).Draw(t, "due since") * 1000
		mortal := rapid.Bool().Draw(t, "is renewed")
		crowd := make([]watcher, tiers)
		for i := range crowd {
			crowd[i] = watcher{
				Windows: Windows{Self: i + 1, Window: window, Detector: NewEvidence(i+1, tiers, window)},
				behind:  rapid.Uint64Range(0, uint64(Guard.Milliseconds())).Draw(t, "behind"),
				late:    rapid.Uint64Range(0, 5000).Draw(t, "late"),
			}
		}
		for now := dueSince; now < dueSince+700_000; now += 311 {
			var owners []int
			for _, w := range crowd {
				j := Job{ID: "a", DueSinceMs: dueSince}
				if mortal {
					j = lifeAt(dueSince, now-w.late)
				}
				if w.Turn(j, now-w.behind).Mine {
					owners = append(owners, w.Self)
				}
			}
			if len(owners) > 1 {
				t.Fatalf("%v own it at age %d", owners, now-dueSince)
			}
		}
	})
}

// windows are some that divide the life of a job and some that do not.
var windows = []time.Duration{window, 7 * time.Second, 45 * time.Second, 8500 * time.Millisecond}

// lifeAt is a price-born job as it was last born by a time, see due times of the planner.
func lifeAt(dueSinceMs, atMs uint64) Job {
	longest := uint64(job.RenewedAfter.Milliseconds())
	for atMs >= dueSinceMs+longest {
		dueSinceMs = (dueSinceMs + longest) / longest * longest
	}
	return Of(job.Job{ID: "a", DueSinceMs: dueSinceMs}, 0)
}

// TIER-9: the last window of a life is cut where the life ends, and nobody owns the job from then on, nor in the part
// of it in which nothing is sent. One that is never renewed has windows for ever.
func TestLifeEnds(t *testing.T) {
	const dueSince = 60_000_000
	mortal := job.Job{ID: "a", DueSinceMs: dueSince}
	other := job.Job{ID: "b", DueSinceMs: dueSince, ExpiresMs: dueSince + 900_000}
	for _, window := range windows {
		owned, ever := uint64(0), uint64(0)
		for age := uint64(0); age < 600_000; age += 500 {
			for self := 1; self <= 3; self++ {
				w := Windows{Self: self, Window: window, Detector: NewEvidence(self, 3, window)}
				turn := w.Turn(Of(mortal, 0), dueSince+age)
				if turn.Mine {
					owned = age
				}
				if turn.EndsMs > dueSince+297_000 || turn.Mine && turn.EndsMs <= dueSince+age ||
					!turn.Mine && turn.NextMs <= dueSince+age || age < 300_000 && turn.NextMs > dueSince+300_000 {
					t.Fatalf("windows of %s: at age %d %+v", window, age, turn)
				}
				if over := turn.EndedMs == dueSince+300_000; over != (age >= 300_000) || over && turn.Owner != 0 {
					t.Fatalf("windows of %s: at age %d %+v", window, age, turn)
				}
				if w.Turn(Of(other, 0), dueSince+age).Mine {
					ever = age
				}
			}
		}
		if owned > 296_999 || owned < 290_000 || ever < 590_000 {
			t.Errorf("windows of %s: last owned at age %d, the other at %d", window, owned, ever)
		}
	}
}

// TIER-10: three jobs missed in a row; not by a poison job, not by jobs nobody proves; one success clears.
func TestEvidence(t *testing.T) {
	e := NewEvidence(2, 3, window)
	at := func(minute uint64) uint64 { return minute * 60_000 }
	miss := func(id string, dueSince uint64) { e.Born(id, dueSince); e.Executed(id, 2, dueSince+31_000) }
	miss("a", at(1))
	miss("b", at(1)+1)
	e.Born("poison", at(1)+2) // nobody executes it, and no simulation shows that anybody could have
	if e.Suspected(1) {
		t.Fatal("suspected after two")
	}
	miss("c", at(1)+3)
	if !e.Suspected(1) {
		t.Fatal("not suspected after three")
	}
	e.Born("probe", at(2)) // the first of its minute
	e.Born("second", at(2)+5)
	if got := e.Owner("probe", 0, at(2)+10_000); got != 1 {
		t.Errorf("the probe is tier %d's", got)
	}
	if got := e.Owner("second", 0, at(2)+40_000); got != 2 {
		t.Errorf("the second job of the minute is tier %d's", got)
	}
	e.Executed("probe", 1, at(2)+41_000)
	if e.Suspected(1) {
		t.Error("one success did not clear it")
	}
	e.Born("d", at(3))
	for n, id := range []string{"e", "f", "g"} {
		e.Born(id, at(3)+uint64(n)+1)
		e.Feasible(id, 0, at(4))
	}
	if !e.Suspected(1) {
		t.Error("three windows that ended although a call would have succeeded accuse nobody")
	}
}

// TIER-10: a position that dips for a moment, recovers, dips again and is liquidated at once accuses nobody: the time
// between is no window.
func TestRenewedJobAccusesNobody(t *testing.T) {
	e := NewEvidence(2, 3, window)
	for _, id := range []string{"a", "b", "c", "d"} {
		e.Born(id, 60_000)
		e.Born(id, 360_000)
		e.Born(id, 360_000)
		e.Executed(id, 1, 361_000)
	}
	if e.Suspected(2) || e.Suspected(3) {
		t.Error("suspected for jobs that were not there")
	}
}

// TIER-10: keepers that learn of the jobs of a minute in another order offer the same one to everybody.
func TestProbeIsTheSameForAll(t *testing.T) {
	one, other := NewEvidence(1, 3, window), NewEvidence(2, 3, window)
	dueTimes := map[string]uint64{"a": 60_500, "b": 60_100, "c": 60_100, "d": 119_999}
	for _, id := range []string{"a", "b", "c", "d"} {
		one.Born(id, dueTimes[id])
	}
	for _, id := range []string{"d", "c", "b", "a"} {
		other.Born(id, dueTimes[id])
	}
	for id := range dueTimes {
		if one.isProbe(id) != (id == "b") || other.isProbe(id) != (id == "b") {
			t.Errorf("%s is the probe: %v and %v", id, one.isProbe(id), other.isProbe(id))
		}
	}
}

// TIER-10: one success clears, also with a job that this keeper does not know.
func TestSuccessWithAnUnknownJobClears(t *testing.T) {
	e := NewEvidence(2, 3, window)
	for _, id := range []string{"a", "b", "c"} {
		e.Born(id, 60_000)
		e.Executed(id, 2, 91_000)
	}
	if !e.Suspected(1) {
		t.Fatal("not suspected")
	}
	e.Executed("unknown", 1, 100_000)
	if e.Suspected(1) {
		t.Error("a success did not clear it")
	}
}

// TIER-10: a simulated call is this keeper's own evidence. However long ago the window ended, it counts from when the
// call was made, and an owner that shows itself within the others' lag was never passed over: after a common restart
// all windows of the outage have been missed by keepers that are well.
func TestFeasibleCountsFromNow(t *testing.T) {
	const restart = 180_000
	e := NewEvidence(2, 3, window)
	for n, id := range []string{"a", "b", "c"} {
		e.Born(id, 60_001+uint64(n)) // "a" is the probe of its minute
		e.Feasible(id, 0, restart)
	}
	e.Born("probe", restart)
	e.Born("fresh", restart+1)
	if got := e.Owner("fresh", 0, restart+2999); got != 1 {
		t.Errorf("tier %d's at once", got)
	}
	e.Executed("fresh", 1, restart+1000)
	e.Born("next", restart+3000)
	if got := e.Owner("next", 0, restart+10_000); got != 1 {
		t.Errorf("tier %d's although the Master has executed a job", got)
	}
}

// TIER-10: what was born and executed while a keeper was away accuses those who go before its executor, the keeper
// itself among them: so it holds back when it returns, as the others expect it to.
func TestKeeperLearnsWhatItMissedWhileAway(t *testing.T) {
	back, other := NewEvidence(1, 3, window), NewEvidence(2, 3, window)
	for n, id := range []string{"a", "b", "c"} {
		dueSince := 60_000 + uint64(n)*1000
		other.Born(id, dueSince)
		other.Executed(id, 2, dueSince+30_500)
		back.Executed("unknown "+id, 2, dueSince+30_500)
		back.Executed("unknown "+id, 2, dueSince+30_500) // given again after a reorg
	}
	for name, e := range map[string]*FailureDetector{"the one that was away": back, "the other": other} {
		if !e.Suspected(1) || e.Missed(1) != 3 || e.Suspected(2) || e.Suspected(3) {
			t.Errorf("%s: suspected %v, the Master missed %d", name, e.suspected, e.Missed(1))
		}
		e.Born("probe", 180_000)
		e.Born("fresh", 181_000)
		if got := e.Owner("fresh", 0, 182_000); got != 2 {
			t.Errorf("%s: tier %d's", name, got)
		}
	}
}

// TIER-8: each thing that closes the gate is named, and so is for what it closes it.
func TestGate(t *testing.T) {
	open := Freshness{HeadMs: 100_000, WatermarkMs: 99_000, EvidenceMs: 99_000, ReportMs: 101_000, Reconciled: true,
		Generation: 1, JobState: 1}
	for _, c := range []struct {
		scope  Scope
		want   string
		change func(*Freshness)
	}{
		{Open, "", func(*Freshness) {}},
		{Open, "", func(f *Freshness) {
			f.HeadAge, f.WatermarkMs, f.EvidenceMs, f.ReportMs, f.PriceAge = 3*time.Second, 97_000, 97_000, 103_000,
				10*time.Second
			f.PriceLead = 3 * time.Second
		}},
		// they may have seen a block first
		{Open, "", func(f *Freshness) { f.WatermarkMs, f.EvidenceMs = 105_000, 105_000 }},
		{EveryJob, "no new block has come", func(f *Freshness) { f.HeadMs = 0 }},
		{EveryJob, "no new block for more than 3s", func(f *Freshness) { f.HeadAge = 3001 * time.Millisecond }},
		{EveryJob, "more than 3s apart", func(f *Freshness) { f.ReportMs = 96_999 }},
		{EveryJob, "more than 3s apart", func(f *Freshness) { f.ReportMs = 103_001 }},
		{EveryJob, "the state has no block", func(f *Freshness) { f.WatermarkMs = 0 }},
		{EveryJob, "the state is more than 3s behind", func(f *Freshness) { f.WatermarkMs = 96_999 }},
		{EveryJob, "evidence is still being read", func(f *Freshness) { f.EvidenceMs = 0 }},
		{EveryJob, "evidence is more than 3s behind", func(f *Freshness) { f.EvidenceMs = 96_999 }},
		{EveryJob, "price reports are still being read", func(f *Freshness) { f.Reading = "price reports" }},
		{EveryJob, "the signer's nonces", func(f *Freshness) { f.Reconciled = false }},
		{EveryJob, "halted: final block is gone", func(f *Freshness) { f.Halted = "final block is gone" }},
		{OneJob, "more than 3s ahead of the newest block",
			func(f *Freshness) { f.PriceLead = 3001 * time.Millisecond }},
		{OneJob, "a price report is more than 10s old", func(f *Freshness) { f.PriceAge = 10_001 * time.Millisecond }},
		{OneJob, "no price report of WETH", func(f *Freshness) { f.Unquoted = "WETH" }},
		{OneJob, "generation 1 of the state, and 2", func(f *Freshness) { f.Generation = 2 }},
		// what holds for every job comes first
		{EveryJob, "the signer's nonces", func(f *Freshness) { f.Reconciled, f.Generation = false, 2 }},
	} {
		f := open
		c.change(&f)
		scope, why := DefaultBounds().Closed(f)
		if scope != c.scope || !strings.Contains(why, c.want) || c.want == "" && why != "" {
			t.Errorf("closed for %d by %q, want %d by %q", scope, why, c.scope, c.want)
		}
	}
}

// TIER-15: bad settings are named, one by one.
func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	signer := chain.Address{1}
	for want, change := range map[string]func(*Config){
		"tiers: 0":                      func(c *Config) { c.Tiers = 0 },
		"priority: 4":                   func(c *Config) { c.Priority = 4 },
		"policy: \"fast\"":              func(c *Config) { c.Policy = "fast" },
		"window: 5s":                    func(c *Config) { c.Window = 5 * time.Second },
		"window: 3 tiers of 2m30s take": func(c *Config) { c.Window = 150 * time.Second },
		"window: 2 tiers of 5m0s take": func(c *Config) {
			c.Policy, c.Tiers, c.Window = PolicyDelay, 2, 5*time.Minute
		},
		"peers[0]: tier 1 is not":         func(c *Config) { c.Peers = []Peer{{1, []chain.Address{signer}}} },
		"peers[0]: tier 2 has no signers": func(c *Config) { c.Peers = []Peer{{2, nil}} },
		"is listed for tier 2 as well": func(c *Config) {
			c.Peers = []Peer{{2, []chain.Address{signer}},
				{3, []chain.Address{signer}}}
		},
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := DefaultConfig()
	c.Peers = []Peer{{2, []chain.Address{signer}}}
	r := c.Roster([]chain.Address{{9}})
	if r.Tier(signer) != 2 || r.Tier(chain.Address{9}) != 1 || r.Tier(chain.Address{7}) != 0 {
		t.Errorf("roster %v", r)
	}
}

// Settings that leave a tier no turn: the longest window that is taken gives each tier one in every life, and planners
// say a job again after the last of them, so that a monitor hears of it (TIER-9, TIER-19).
func TestEveryTierHasATurn(t *testing.T) {
	const dueSince, life = 1_700_000_000_000, uint64(job.RenewedAfter / time.Millisecond)
	for tiers := 1; tiers <= 16; tiers++ {
		c := DefaultConfig()
		c.Tiers = tiers
		for c.Window = 2 * Guard; c.Validate() == nil; c.Window += 100 * time.Millisecond {
		}
		if c.Window -= 100 * time.Millisecond; c.Window < 2*Guard {
			t.Fatalf("%d tiers: no window is taken", tiers)
		}
		for self := 1; self <= tiers; self++ {
			w, mine := Windows{Self: self, Window: c.Window, Detector: NewEvidence(self, tiers, c.Window)}, false
			for now := uint64(dueSince); now < dueSince+life; now += 100 {
				mine = mine || w.Turn(Job{ID: "a", DueSinceMs: dueSince, LifeEndsMs: dueSince + life}, now).Mine
			}
			if !mine {
				t.Errorf("tier %d of %d, %s each: never its turn", self, tiers, c.Window)
			}
		}
		const said = uint64(job.SaidEvery / time.Millisecond)
		for first := uint64(0); first < said; first += 500 {
			w, raised := NewWatch(tiers, c.Window), false
			w.Look(dueSince, dueSince)
			for now := dueSince + first; now < dueSince+life; now += said {
				w.Due("a", dueSince, now)
				for _, a := range w.Look(now, now) {
					raised = raised || a.Name == NobodyExecutes
				}
			}
			if !raised {
				t.Errorf("%d tiers of %s, said from %d ms on: nobody executes, and no alarm", tiers, c.Window, first)
			}
		}
	}
}

// The help says no length of a window: a venue may have another, and its delays follow that.
func TestHelpSaysNoWindow(t *testing.T) {
	length := regexp.MustCompile(`[1-9]\d* ?s\b`)
	for f := range reflect.TypeFor[Config]().Fields() {
		if found := length.FindString(f.Tag.Get("help")); found != "" {
			t.Errorf("the help of %s says %q; name windows instead (config.go beside this test)", f.Tag.Get("toml"),
				found)
		}
	}
}

// TIER-8: one token's report, ahead or behind, shows nothing of the time for the jobs of others.
func TestTimeOfReports(t *testing.T) {
	const head, early, old = 100_000, 159_000, 90_000
	for _, tt := range []struct {
		newest []uint64
		want   uint64
	}{
		{nil, 0},
		{[]uint64{head}, head},
		{[]uint64{early}, early},
		{[]uint64{old}, old},
		{[]uint64{head - 3000, head + 3000}, head + 3000},
		{[]uint64{head, early}, head},
		{[]uint64{early, head, head - 1000, old}, head},
		{[]uint64{early, early, head}, early},
		{[]uint64{early, old, old}, early}, // the others' feed is silent, and nobody bears the head out
		{[]uint64{head - 3001, old, old}, head - 3001},
	} {
		if got := DefaultBounds().TimeOfReports(head, tt.newest); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.newest, got, tt.want)
		}
	}
}
