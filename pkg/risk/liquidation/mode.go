package liquidation

import (
	"time"

	"perpkeeper/pkg/chain"
)

// Mode is how volatile the markets are, and with it how often all positions are swept (LIQ-1).
type Mode int

// The modes, calmest first.
const (
	Normal   Mode = iota
	Volatile      // a mark price moved by more than 5 % within the window
	Extreme       // by more than 10 %
)

// String returns the name that metrics and logs use.
func (m Mode) String() string { return [...]string{"normal", "volatile", "extreme"}[m] }

// SweepInterval is the time between two sweeps in a mode, by that of the normal one: 10, 5 and 2 s where that is 10 s
// (LIQ-1).
func (m Mode) SweepInterval(normal time.Duration) time.Duration {
	return normal / [...]time.Duration{1, 2, 5}[m]
}

// percent is the volatility above which a mode begins.
func (m Mode) percent() uint64 { return [...]uint64{0, 5, 10}[m] }

// calm is the share, in percent, of a mode's threshold below which the markets have to stay for a whole window before
// the mode is left: a market that moves about the threshold does not flap between two modes.
const calm = 80

// Modes follows the mark prices of all markets and returns the mode that they call for: the highest that any of them
// does. Volatility is (max − min) / min of a market's mark price over the window. It is for one goroutine at a time,
// and knows no clock but the times it is given. One that goes back, as a reorganised chain's does for a moment, calms
// nothing.
type Modes struct {
	window     uint64 // ms
	markets    map[chain.Address]*extent
	mode       Mode
	lastCalled uint64 // ms; when the present mode was last called for
}

// NewModes returns a Modes in Normal mode. The default window is 60 s.
func NewModes(window time.Duration) *Modes {
	return &Modes{window: uint64(window.Milliseconds()), markets: map[chain.Address]*extent{}}
}

// Observe notes the mark price of a market (USD with 30 decimals per smallest unit) at a time (Unix ms).
func (m *Modes) Observe(market chain.Address, mark chain.Uint, atMs uint64) {
	e := m.markets[market]
	if e == nil {
		e = &extent{}
		m.markets[market] = e
	}
	e.add(point{atMs, mark})
}

// Mode returns the mode at a time (Unix ms). It rises at once, and falls by one step at a time.
func (m *Modes) Mode(nowMs uint64) Mode {
	for _, e := range m.markets {
		e.forget(nowMs - min(nowMs, m.window))
	}
	for mode := Extreme; mode > m.mode; mode-- {
		if m.exceeds(mode.percent() * 100) {
			m.mode = mode
		}
	}
	switch {
	case m.mode == Normal || m.exceeds(m.mode.percent()*calm):
		m.lastCalled = nowMs
	case nowMs >= m.lastCalled+m.window:
		m.mode, m.lastCalled = m.mode-1, nowMs
	}
	return m.mode
}

// exceeds reports whether the volatility of any market is above so many basis points.
func (m *Modes) exceeds(points uint64) bool {
	for _, e := range m.markets {
		if e.exceeds(points) {
			return true
		}
	}
	return false
}

// extent keeps the highest and the lowest mark price of a sliding window: of both only the points that can still become
// the extreme one.
type extent struct{ highs, lows []point }

type point struct {
	atMs uint64
	mark chain.Uint
}

func (e *extent) add(p point) {
	for len(e.highs) > 0 && !p.mark.Less(e.highs[len(e.highs)-1].mark) {
		e.highs = e.highs[:len(e.highs)-1]
	}
	for len(e.lows) > 0 && !e.lows[len(e.lows)-1].mark.Less(p.mark) {
		e.lows = e.lows[:len(e.lows)-1]
	}
	e.highs, e.lows = append(e.highs, p), append(e.lows, p)
}

// forget drops points older than a time. The youngest of all stays: a price holds until the next one.
func (e *extent) forget(sinceMs uint64) {
	for len(e.highs) > 1 && e.highs[0].atMs < sinceMs {
		e.highs = e.highs[1:]
	}
	for len(e.lows) > 1 && e.lows[0].atMs < sinceMs {
		e.lows = e.lows[1:]
	}
}

func (e *extent) exceeds(points uint64) bool {
	if len(e.highs) == 0 {
		return false
	}
	high, low := e.highs[0].mark, e.lows[0].mark
	const whole = 10_000
	return low.Mul(chain.U64(points)).Less(high.Sub(low).Mul(chain.U64(whole)))
}
