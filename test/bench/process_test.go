package bench

import (
	"encoding/csv"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// waits are the observations of a histogram: how many, their sum, and how many were within each bound, in seconds.
type waits struct {
	count, sum float64
	within     map[float64]float64
}

// ticks adds up how long the ticks of planners took.
func (c crew) ticks() waits {
	all := waits{within: map[float64]float64{}}
	for _, p := range c {
		for _, one := range p.Family("planner_tick_seconds") {
			all.add(one.GetHistogram())
		}
	}
	return all
}

func (w *waits) add(h *dto.Histogram) {
	w.count += float64(h.GetSampleCount())
	w.sum += h.GetSampleSum()
	for _, b := range h.GetBucket() {
		w.within[b.GetUpperBound()] += float64(b.GetCumulativeCount())
	}
}

// since are those that came after others.
func (w waits) since(before waits) waits {
	later := waits{w.count - before.count, w.sum - before.sum, map[float64]float64{}}
	for bound, n := range w.within {
		later.within[bound] = n - before.within[bound]
	}
	return later
}

func (w waits) mean() float64 { return w.sum / max(w.count, 1) }

// quantile is the lowest bound within which that share of the observations was; an hour where there is none.
func (w waits) quantile(share float64) time.Duration {
	for _, bound := range slices.Sorted(maps.Keys(w.within)) {
		if w.within[bound] >= share*w.count && !math.IsInf(bound, 1) {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return time.Hour
}

// memory is what the processes have of a kind of memory in /proc, bytes.
func (c crew) memory(t *testing.T, kind string) (sizes []uint64) {
	t.Helper()
	for _, p := range c {
		sizes = append(sizes, memory(t, p, kind))
	}
	return sizes
}

// processorTime is what the processes have used in all.
func (c crew) processorTime(t *testing.T) (total time.Duration) {
	t.Helper()
	for _, p := range c {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/stat")
		if err != nil {
			t.Fatalf("%s has ended: %v", p.Name, err)
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		for _, field := range strings.Fields(rest)[11:13] {
			n, _ := strconv.ParseInt(field, 10, 64)
			total += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
		}
	}
	return total
}

// writeCSV writes a table of results.
func writeCSV(t *testing.T, path string, rows [][]string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(file)
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
