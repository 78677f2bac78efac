package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/services/demo"
	"perpkeeper/test/programs"
)

// killPoint is a labelled place in a process at which it can be made to kill itself.
type killPoint struct{ process, label string }

// killPoints reads the labels from the sources, so that a new one is exercised without being listed. Points of pkg/pg are statevm's.
func killPoints(t *testing.T) (points []killPoint) {
	t.Helper()
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	for folder, process := range map[string]string{"services/scanner": "scanner", "services/statevm": "statevm", "pkg/pg": "statevm"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				points = append(points, killPoint{process, m[1]})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(points, func(a, b killPoint) int { return strings.Compare(a.process+a.label, b.process+b.label) })
	if len(points) == 0 {
		t.Fatal("no labelled points found")
	}
	return slices.Compact(points)
}

// seeds is how many kills are tried: KEEPER_KILLS, or a few.
func seeds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("KEEPER_KILLS"))
	if err != nil {
		n = 8
	}
	t.Logf("KEEPER_KILLS=%d", n)
	return n
}

// PIPE-2, PIPE-3: scanner and statevm are killed at labelled points, one after the other, while the chain goes on and reorganises itself. After every
// death the tables become equal to a fold of the canonical chain.
func TestKillPoints(t *testing.T) {
	long(t)
	points, random := killPoints(t), seed(t)
	k := startMortal(t)
	w := k.twin()
	hits := map[killPoint]int{}
	order := random.Perm(len(points))
	for i := range seeds(t) {
		at := points[order[i%len(order)]]
		if k.dieAt(at, random) {
			hits[at]++
		}
		head := k.head()
		k.await("tables equal to a fold of the canonical chain after "+at.label, func(ctx context.Context) error {
			_, err := w.equals(ctx, k.db, head)
			return err
		})
	}
	k.finish()
	for _, at := range slices.SortedFunc(maps.Keys(hits), func(a, b killPoint) int { return strings.Compare(a.process+a.label, b.process+b.label) }) {
		t.Logf("%-8s died %d times at %s", at.process, hits[at], at.label)
	}
	var never []string
	for _, at := range points {
		if hits[at] == 0 {
			never = append(never, at.label)
		}
	}
	t.Logf("%d of %d points reached; not reached: %v", len(hits), len(points), never)
}

func startMortal(t *testing.T) *keeper {
	t.Helper()
	folder, err := programs.Mortal()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(s *demo.Settings) { s.Binaries = folder })
}

// dieAt kills a process so that its next run ends at a point, and waits for that end. It reports whether the point was reached; points of reorgs get
// reorgs. Whatever comes of it, the process runs on without the point afterwards.
func (k *keeper) dieAt(at killPoint, random *rand.Rand) bool {
	k.t.Helper()
	p := k.Process(at.process)
	nth := 1 + random.IntN(1<<random.IntN(5)) // mostly early, at times late
	before := p.Restarts()
	p.Arm(fmt.Sprintf("KEEPER_FAILPOINT=%s:%d", at.label, nth))
	p.Kill()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for turn := 1; ; turn++ {
		if p.Restarts() >= before+2 {
			return true
		}
		if turn%20 == 0 && random.IntN(2) == 0 {
			k.devnet("devnet_reorg", map[string]any{"depth": 1 + random.IntN(8), "style": []string{"replay", "drop"}[random.IntN(2)]})
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			k.t.Logf("%s was not reached %d times within 20 s", at.label, nth)
			p.Kill() // so that it goes on without the point
			return false
		}
	}
}

// head is the number of the chain's newest block.
func (k *keeper) head() uint64 {
	k.t.Helper()
	var number string
	if err := k.chain.CallContext(k.t.Context(), &number, "eth_blockNumber"); err != nil {
		k.t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(number, "0x"), 16, 64)
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}
