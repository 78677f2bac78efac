package chaos

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// deathWithin bounds the wait for a process to reach the point it is to die at.
const deathWithin = 25 * time.Second

// road is what has to be done to a rig so that a process gets to its points.
type road struct {
	name  string
	rig   func(t *testing.T) *rig
	seed  func(r *rig, at point, random *rand.Rand) (died bool)
	seeds int // that one rig stands; 0 = any number
}

// roads are by the beginning of the label; the first that fits is taken.
var roads = []struct {
	labels []string
	road   *road
}{
	{[]string{"scanner.range."}, &road{name: "history", rig: historyRig, seed: dieInHistory}},
	{[]string{"scanner.correction."}, &road{name: "correction", rig: correctionRig, seed: dieInCorrection}},
	{[]string{"scanner.halt.", "scanner.accept.", "statevm.halt."}, &road{name: "broken finality", rig: plainRig, seed: dieInHalt}},
	{[]string{"statevm.dead_letter"}, &road{name: "dead letters", rig: plainRig, seed: dieAtDeadLetter, seeds: partitions}},
	{[]string{""}, &road{name: "main road", rig: plainRig, seed: dieOnRoad}},
}

func roadTo(at point) *road {
	for _, r := range roads {
		if slices.ContainsFunc(r.labels, func(beginning string) bool { return strings.HasPrefix(at.label, beginning) }) {
			return r.road
		}
	}
	panic("the last road fits every label")
}

// trial is one death: where, and from which random numbers everything about it is drawn.
type trial struct {
	at     point
	number int
}

// trials spreads deaths over the points: KEEPER_KILLS of them, else one at each point in the long run, and otherwise one of each process on its main road.
func trials(t *testing.T, random *rand.Rand) (all []trial) {
	t.Helper()
	known := points(t)
	order := random.Perm(len(known))
	if os.Getenv("KEEPER_LONG") == "" {
		for _, process := range []string{"scanner", "statevm"} {
			for _, i := range order {
				if at := known[i]; at.process == process && roadTo(at).name == "main road" {
					all = append(all, trial{at, i})
					break
				}
			}
		}
		return all
	}
	kills, err := strconv.Atoi(os.Getenv("KEEPER_KILLS"))
	if err != nil {
		kills = len(known)
	}
	for i := range kills {
		all = append(all, trial{known[order[i%len(order)]], i})
	}
	return all
}

// PIPE-2, PIPE-3: scanner and statevm are killed at every labelled point, one death after the other, while the chain goes on and reorganises itself. After
// every death the tables become equal to a fold of the canonical chain.
func TestKilledAtEveryPoint(t *testing.T) {
	from := seed(t)
	all := trials(t, rand.New(rand.NewPCG(from, 0)))
	deaths := map[point]int{}
	began := time.Now()
	for _, r := range roads {
		if mine := slices.DeleteFunc(slices.Clone(all), func(one trial) bool { return roadTo(one.at) != r.road }); len(mine) > 0 {
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
		t.Logf("seed %d: %s at %s: died %v, %.1f s", one.number, one.at.process, one.at.label, died, time.Since(began).Seconds())
	}
	on.witness()
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

// process is the one that has a point.
func (r *rig) process(at point) *process {
	if at.process == "scanner" {
		return r.scanner
	}
	return r.statevm
}

// nth draws at which hit to die: mostly early, at times late, never beyond most.
func nth(random *rand.Rand, most int) int {
	return min(1+random.IntN(1<<random.IntN(6)), most)
}

// mostHits is how often a point is certainly hit in one run of a process on the main road; more often where it is not named.
var mostHits = map[string]int{
	"scanner.claim.before": 1, "scanner.claim.after": 1, "scanner.claim.partition": partitions, "statevm.claimed": partitions, "pg.claim": partitions,
}

func plainRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil).run()
	r.warmUp()
	return r
}

// dieOnRoad kills a process on the main road: at its start, while it works, in reorgs.
func dieOnRoad(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	r.devnet.Resume()
	needsReorgs := strings.Contains(at.label, "reorg") || strings.Contains(at.label, "undo")
	most := 24
	if m := mostHits[at.label]; m > 0 {
		most = m
	} else if needsReorgs {
		most = 2 * partitions
	}
	p := r.process(at)
	p.restart(armed(at.label, nth(random, most)))
	died := p.dies(deathWithin, func(int) {
		r.executor.round()
		if needsReorgs || random.IntN(4) == 0 {
			r.reorg(random)
		}
	})
	if random.IntN(3) == 0 {
		r.reorg(random) // while the process is down
	}
	p.start()
	if random.IntN(3) == 0 {
		r.reorg(random) // while it comes back
	}
	r.settle("a death at " + at.label)
	return died
}

// historyRig has a chain with history, a topic and tables without, and a scanner that publishes final blocks in short ranges when it is some behind.
func historyRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil, "PERPKEEPER_SCANNER_BACKFILL_MIN_BLOCKS=16", "PERPKEEPER_SCANNER_BACKFILL_MAX_RANGE=12", "PERPKEEPER_SCANNER_BACKFILL_WORKERS=3")
	r.statevm.start()
	r.trade()
	r.mine(100)
	return r
}

// dieInHistory kills the scanner between ranges of blocks that came while it was down.
func dieInHistory(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	r.scanner.kill()
	r.devnet.Resume()
	r.mine(60 + random.IntN(60))
	r.scanner.start(armed(at.label, nth(random, 2*partitions)))
	died := r.scanner.dies(deathWithin, func(int) {})
	if random.IntN(2) == 0 {
		r.reorg(random)
	}
	r.scanner.start()
	r.settle("a death at " + at.label)
	return died
}
