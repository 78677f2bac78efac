package tier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// watchFixture is a watch over three tiers on a clock that the test moves; what was read is as new as the head.
type watchFixture struct {
	*Watch
	t      *testing.T
	now    uint64
	alarms []string
}

func newWatchFixture(t *testing.T) *watchFixture {
	o := &watchFixture{Watch: NewWatch(3, window), t: t, now: 1_000_000}
	o.pass(0)
	return o
}

// pass lets time pass in steps of a second, in which planners publish again what is due.
func (o *watchFixture) pass(d time.Duration) {
	for end := o.now + uint64(d.Milliseconds()); ; o.now += min(1000, end-o.now) {
		for id, j := range o.open {
			o.Due(id, j.dueSinceMs, o.now)
		}
		for _, a := range o.Look(o.now, o.now) {
			o.alarms = append(o.alarms, fmt.Sprintf("%s over=%t", a.Name, a.Over))
		}
		if o.now == end {
			return
		}
	}
}

// want compares the alarms since the last comparison.
func (o *watchFixture) want(alarms ...string) {
	o.t.Helper()
	if got, want := strings.Join(o.alarms, ", "), strings.Join(alarms, ", "); got != want {
		o.t.Errorf("alarms %q, want %q", got, want)
	}
	o.alarms = nil
}

// job is born now and ended by a tier at an age.
func (o *watchFixture) job(id string, by int, age time.Duration) {
	o.Due(id, o.now, o.now)
	o.pass(age)
	o.Executed(id, by, o.now)
	o.pass(0)
}

// TIER-19: all is well while the Master executes, whoever else takes an order back, and while nothing is due.
func TestWatchIsQuiet(t *testing.T) {
	o := newWatchFixture(t)
	for i := range 10 {
		o.job(fmt.Sprint("a", i), 1, 2*time.Second)
		o.job(fmt.Sprint("b", i), 0, 80*time.Second) // nobody could execute it, and its owner took it back
	}
	o.pass(time.Hour)
	o.want()
}

// TIER-19: a backup that executes is reported at once and for as long as it goes on; three jobs that the Master let
// pass are its silence, and one success ends it.
func TestWatchTellsThatTheMasterIsSilent(t *testing.T) {
	o := newWatchFixture(t)
	o.job("a", 2, 31*time.Second)
	o.want("backup_executes over=false")
	o.job("b", 2, 31*time.Second)
	o.want()
	o.job("c", 3, 65*time.Second)
	o.want("master_silent over=false")
	if all := o.Alarms(); len(all) != 2 || !strings.Contains(all[0].Text, "the Master let 3 jobs running pass its "+
		"window; it was not seen to execute anything") {
		t.Errorf("alarms: %+v", all)
	}
	o.job("d", 1, time.Second)
	o.pass(59 * time.Second)
	o.want()
	o.pass(2 * time.Second)
	o.want("master_silent over=true")
	o.pass(5 * time.Minute)
	o.want("backup_executes over=true")
}

// TIER-10: what a backup executes within the Master's window, or without this monitor having known it, does not
// count against the Master.
func TestWatchAccusesOfWholeWindowsAlone(t *testing.T) {
	o := newWatchFixture(t)
	for i := range 5 {
		o.job(fmt.Sprint("a", i), 2, 29*time.Second)
		o.Executed(fmt.Sprint("unknown ", i), 2, o.now)
	}
	o.want("backup_executes over=false")
}

// TIER-19: a job that outlives every window is reported, but not where keepers execute other things, where it is no
// longer due, or where the chain stands still.
func TestWatchTellsThatNobodyExecutes(t *testing.T) {
	o := newWatchFixture(t)
	o.Due("a", o.now, o.now)
	o.pass(92 * time.Second)
	o.want()
	o.pass(time.Second)
	o.want("nobody_executes over=false")
	if text := o.Alarms()[0].Text; !strings.Contains(text, "1 jobs are older than the windows of all 3 tiers, the "+
		"oldest is a, due for 1m33s") {
		t.Error(text)
	}
	o.Executed("a", 2, o.now)
	o.pass(time.Minute)
	o.want("backup_executes over=false", "nobody_executes over=true")

	o = newWatchFixture(t)
	o.Due("poison", o.now, o.now)
	o.pass(time.Second)
	o.job("b", 1, time.Second)
	o.pass(10 * time.Minute)
	o.want()

	o = newWatchFixture(t)
	o.Due("recovered", o.now, o.now)
	for range 200 { // no planner publishes it again
		o.now += 1000
		for _, a := range o.Look(o.now, o.now) {
			t.Errorf("raised %+v", a)
		}
	}
}

// TIER-19: a job whose condition held for most of its windows and does not any more is nobody's failure, although it is
// not forgotten yet.
func TestWatchIsQuietAboutMoments(t *testing.T) {
	o := newWatchFixture(t)
	o.Due("moment", o.now, o.now)
	o.pass(60 * time.Second)
	for range 200 {
		o.now += 1000
		for _, a := range o.Look(o.now, o.now) {
			t.Errorf("raised %+v", a)
		}
	}
}

// A monitor that does not see the chain reports that, and accuses nobody meanwhile.
func TestWatchSaysThatItIsBlind(t *testing.T) {
	w := NewWatch(3, window)
	if got := w.Look(0, 0); got != nil {
		t.Errorf("before the first head: %+v", got)
	}
	w.Due("a", 1_000_000, 1_000_000)
	if got := w.Look(1_000_000, 0); got != nil {
		t.Errorf("while the past is read: %+v", got)
	}
	got := w.Look(1_030_000, 0)
	if len(got) != 1 || got[0].Name != Blind || got[0].Over {
		t.Fatalf("got %+v", got)
	}
	w.Due("a", 1_000_000, 1_190_000)
	if got := w.Look(1_200_000, 1_050_000); len(got) != 0 {
		t.Errorf("accused with old evidence: %+v", got)
	}
	w.Due("a", 1_000_000, 1_230_000)
	if got := w.Look(1_231_000, 1_231_000); len(got) != 2 || got[0].Name != NobodyExecutes || got[1].Name != Blind ||
		!got[1].Over {
		t.Errorf("got %+v", got)
	}
}

// What a monitor reads of the past at its start is no news: neither what a backup did long ago, nor what was due then.
func TestWatchOfThePast(t *testing.T) {
	w := NewWatch(3, window)
	w.Due("gone", 1_000_000, 1_100_000)
	w.Due("done", 1_000_000, 1_030_000)
	w.Executed("done", 2, 1_031_000)
	if got := w.Look(1_900_000, 1_900_000); got != nil {
		t.Errorf("raised %+v", got)
	}
	w.Executed("new", 2, 1_901_000)
	if got := w.Look(1_902_000, 1_902_000); len(got) != 1 || got[0].Name != BackupExecutes {
		t.Errorf("raised %+v", got)
	}
}

// Whatever happens, an alarm is raised and ended by turns, an end comes no sooner than it may, and time that goes back
// changes nothing.
func TestAlarmsDoNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, now := NewWatch(3, window), uint64(1_000_000)
		raised := map[AlarmName]uint64{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "job"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w.Due(id, now-min(now, rapid.Uint64Range(0, 200_000).Draw(t, "age")), now)
			case 1:
				w.Executed(id, rapid.IntRange(0, 3).Draw(t, "by"), now)
			}
			now += rapid.Uint64Range(0, 60_000).Draw(t, "pause")
			at := now - rapid.Uint64Range(0, 2_000).Draw(t, "back")
			for _, a := range w.Look(at, at-rapid.Uint64Range(0, 40_000).Draw(t, "behind")) {
				since, stands := raised[a.Name]
				if a.Over != stands {
					t.Fatalf("step %d: %+v, and it stood: %t", i, a, stands)
				}
				if a.Over && (a.SinceMs != since || w.now < since+uint64(a.Name.clearAfter().Milliseconds())) {
					t.Fatalf("step %d: %+v was raised at %d, it is %d", i, a, since, w.now)
				}
				if raised[a.Name] = a.SinceMs; a.Over {
					delete(raised, a.Name)
				}
			}
			if len(w.Alarms()) != len(raised) {
				t.Fatalf("step %d: %+v stand, %v were reported", i, w.Alarms(), raised)
			}
		}
	})
}

func TestMonitorConfig(t *testing.T) {
	c := DefaultConfig()
	c.Monitor = true
	for _, want := range []string{"monitor: there is nothing to watch", "monitor: peers do not name the Master"} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	c.Enabled = true
	c.Peers = []Peer{{Tier: 1, Signers: []chain.Address{{1}}}, {Tier: 2, Signers: []chain.Address{{2}}},
		{Tier: 3, Signers: []chain.Address{{3}}}}
	if err := c.Validate(); err != nil {
		t.Errorf("refused: %v", err)
	}
	c.Monitor = false
	if err := c.Validate(); err == nil {
		t.Error("a keeper that takes part is its own peer")
	}
}
