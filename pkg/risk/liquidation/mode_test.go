package liquidation

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// LIQ-1: 10 s, 5 s above 5 %, 2 s above 10 %; up at once, down only after a calm window.
func TestModes(t *testing.T) {
	m := NewModes(time.Minute)
	market := chain.Address{1}
	for _, step := range []struct {
		second, mark uint64
		want         Mode
	}{
		{0, 10_000, Normal}, {10, 10_500, Normal}, // exactly 5 % is not above it
		{11, 10_501, Volatile}, {12, 11_001, Extreme},
		// the window holds 10 900 and 11 001 now, and the last nervous moment was at second 70 at the latest
		{30, 10_900, Extreme}, {73, 10_900, Extreme},
		{132, 10_900, Volatile}, {191, 10_900, Volatile}, {193, 10_900, Normal},
	} {
		m.Observe(market, chain.U64(step.mark), step.second*1000)
		if got := m.Mode(step.second * 1000); got != step.want {
			t.Fatalf("second %d at %d: %v, want %v", step.second, step.mark, got, step.want)
		}
	}
	for mode, want := range map[Mode]time.Duration{Normal: 10 * time.Second, Volatile: 5 * time.Second,
		Extreme: 2 * time.Second} {
		if got := mode.SweepInterval(10 * time.Second); got != want {
			t.Errorf("%v: %v, want %v", mode, got, want)
		}
	}
}

// A price about a threshold does not make the mode flap: over any path it falls at most once a window.
func TestModesDoNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 60_000
		m := NewModes(window * time.Millisecond)
		var now, fell uint64
		before := Normal
		for range rapid.IntRange(1, 200).Draw(t, "ticks") {
			now += rapid.Uint64Range(100, 5000).Draw(t, "pause")
			m.Observe(chain.Address{1}, chain.U64(rapid.Uint64Range(940, 1060).Draw(t, "mark")), now)
			mode := m.Mode(now)
			if mode < before {
				if before-mode != 1 || fell != 0 && now-fell < window {
					t.Fatalf("fell from %v to %v at %d, before at %d", before, mode, now, fell)
				}
				fell = now
			}
			before = mode
		}
	})
}

// The window's extremes are those of a plain scan.
func TestExtentIsAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e extent
		var all []point
		var now uint64
		for range rapid.IntRange(1, 100).Draw(t, "ticks") {
			now += rapid.Uint64Range(0, 3).Draw(t, "pause")
			p := point{now, chain.U64(rapid.Uint64Range(1, 20).Draw(t, "mark"))}
			all = append(all, p)
			e.add(p)
			since := now - min(now, 10)
			e.forget(since)
			low, high := p.mark, p.mark
			for _, q := range all {
				if q.atMs >= since {
					low, high = low.Min(q.mark), high.Max(q.mark)
				}
			}
			if e.lows[0].mark != low || e.highs[0].mark != high {
				t.Fatalf("at %d: %v to %v, want %v to %v", now, e.lows[0].mark, e.highs[0].mark, low, high)
			}
		}
	})
}

// LIQ-1: a chain whose time goes back by a second, as in a reorg, does not calm the markets.
func TestTimeThatGoesBackCalmsNothing(t *testing.T) {
	m := NewModes(time.Minute)
	for _, step := range []struct {
		second, mark uint64
		want         Mode
	}{{0, 10_000, Normal}, {12, 12_000, Extreme}, {80, 12_000, Volatile}, {79, 12_000, Volatile},
		{141, 12_000, Normal}} {
		m.Observe(chain.Address{1}, chain.U64(step.mark), step.second*1000)
		if got := m.Mode(step.second * 1000); got != step.want {
			t.Errorf("second %d: %v, want %v", step.second, got, step.want)
		}
	}
}
