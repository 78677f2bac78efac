package chaos

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	parts "perpkeeper/test/rig"
)

// trial is one death: where, and from which random numbers everything about it is drawn.
type trial struct {
	at     point
	number int
}

// trials spreads deaths over the points, over both processes alike: KEEPER_KILLS of them, else one at each point in the
// long run, and otherwise one of each process on its main road.
func trials(t *testing.T, random *rand.Rand) (all []trial) {
	t.Helper()
	known := points(t)
	random.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	kills := len(known)
	if os.Getenv("KEEPER_LONG") == "" {
		known = slices.DeleteFunc(known, func(at point) bool { return roadTo(at).name != "main road" })
		kills = 2
	} else if n, err := strconv.Atoi(os.Getenv("KEEPER_KILLS")); err == nil {
		kills = n
	}
	known = alternating(known)
	for i := range kills {
		all = append(all, trial{known[i%len(known)], i})
	}
	return all
}

// alternating has the points of both processes by turns, and the rest of the longer list behind.
func alternating(all []point) (mixed []point) {
	ofScanner := slices.DeleteFunc(slices.Clone(all), func(at point) bool { return at.process != "scanner" })
	ofStatevm := slices.DeleteFunc(slices.Clone(all), func(at point) bool { return at.process != "statevm" })
	for i := range max(len(ofScanner), len(ofStatevm)) {
		mixed = slices.Concat(mixed, ofScanner[min(i, len(ofScanner)):min(i+1, len(ofScanner))],
			ofStatevm[min(i, len(ofStatevm)):min(i+1, len(ofStatevm))])
	}
	return mixed
}

// PIPE-2, PIPE-3: scanner and statevm are killed at every labelled point, one death after the other, while the chain
// goes on and reorganises itself. After every death the tables become equal to a fold of the canonical chain.
func TestKilledAtEveryPoint(t *testing.T) {
	from := parts.Seed(t)
	all := trials(t, rand.New(rand.NewPCG(from, 0)))
	deaths := map[point]int{}
	began := time.Now()
	for _, r := range roads {
		if mine := slices.DeleteFunc(slices.Clone(all),
			func(one trial) bool { return roadTo(one.at) != r.road }); len(mine) > 0 {
			t.Run(r.road.name, func(t *testing.T) { r.road.walk(t, from, mine, deaths) })
		}
	}
	t.Logf("%d seeds in %.0f s", len(all), time.Since(began).Seconds())
	report(t, all, deaths)
}

// walk tries deaths on one rig, or on as many as it takes.
func (r *road) walk(t *testing.T, from uint64, all []trial, deaths map[point]int) {
	t.Helper()
	var on *rig
	for i, one := range all {
		began := time.Now()
		if i == 0 || r.seeds > 0 && i%r.seeds == 0 {
			on = r.rig(t)
			t.Logf("a rig: %.1f s", time.Since(began).Seconds())
			began = time.Now()
		}
		died := r.seed(on, one.at, rand.New(rand.NewPCG(from, 1+uint64(one.number))))
		if died {
			deaths[one.at]++
		}
		t.Logf("seed %d: %s at %s: died %v, %.1f s", one.number, one.at.process, one.at.label, died, time.Since(began).
			Seconds())
	}
	on.checkCoverage()
}

// report fails for points that were tried and at which nobody died.
func report(t *testing.T, all []trial, deaths map[point]int) {
	t.Helper()
	tried := map[point]int{}
	for _, one := range all {
		tried[one.at]++
	}
	reached := 0
	for _, at := range points(t) {
		if tried[at] == 0 {
			continue
		}
		t.Logf("%-8s died %d of %d times at %s", at.process, deaths[at], tried[at], at.label)
		if deaths[at] == 0 {
			t.Errorf("%s was never reached in %d seeds", at.label, tried[at])
			continue
		}
		reached++
	}
	t.Logf("%d of %d points reached", reached, len(points(t)))
}
