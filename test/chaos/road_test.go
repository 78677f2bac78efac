package chaos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// deathWithin bounds the wait for a process to reach the point it is to die at.
const deathWithin = time.Minute

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
	{[]string{"scanner.halt.", "scanner.accept.", "statevm.halt."},
		&road{name: "broken finality", rig: plainRig, seed: dieInHalt}},
	{[]string{"statevm.dead_letter"}, &road{name: "dead letters", rig: plainRig, seed: dieAtDeadLetter,
		seeds: partitions}},
	{[]string{""}, &road{name: "main road", rig: plainRig, seed: dieOnRoad}},
}

func roadTo(at point) *road {
	for _, r := range roads {
		if slices.ContainsFunc(r.labels,
			func(beginning string) bool { return strings.HasPrefix(at.label, beginning) }) {
			return r.road
		}
	}
	panic("the last road fits every label")
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

// mostHits is how often a point is certainly hit in one run of a process on the main road; more often where it is not
// named.
var mostHits = map[string]int{
	"scanner.claim.before": 1, "scanner.claim.after": 1, "scanner.claim.partition": partitions,
	"scanner.finalized.before": partitions, "scanner.finalized.after": partitions,
	"statevm.claimed": partitions, "pg.claim": partitions,
}

func plainRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t).run()
	r.warmUp()
	return r
}

// dieOnRoad kills a process on the main road: at its start, while it works, in reorgs.
func dieOnRoad(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	r.devnet.Resume()
	needsReorgs := slices.ContainsFunc([]string{"reorg", "undo", "finalized"},
		func(what string) bool { return strings.Contains(at.label, what) })
	most := 24
	if m := mostHits[at.label]; m > 0 {
		most = m
	} else if needsReorgs {
		most = 2 * partitions
	}
	p := r.process(at)
	p.restart(armed(at.label, nth(random, most)))
	died := p.Dies(deathWithin, func() {
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
	r.compareAtStalledHead("a death at " + at.label)
	return died
}

// historyRig has a chain with history, a topic and tables without, and a scanner that publishes final blocks in short
// ranges when it is some behind.
func historyRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "PERPKEEPER_SCANNER_BACKFILL_MAX_RANGE=12")
	r.statevm.start()
	r.trade()
	r.mine(100)
	return r
}

// dieInHistory kills the scanner between ranges of blocks that came while it was down.
func dieInHistory(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	r.scanner.Kill()
	r.devnet.Resume()
	r.mine(60 + random.IntN(60))
	r.scanner.start(armed(at.label, nth(random, 2*partitions)))
	died := r.scanner.Dies(deathWithin, func() {})
	if random.IntN(2) == 0 {
		r.reorg(random)
	}
	r.scanner.start()
	r.compareAtStalledHead("a death at " + at.label)
	return died
}
