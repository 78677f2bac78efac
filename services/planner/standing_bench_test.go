package planner

import (
	"maps"
	"testing"

	"perpkeeper/pkg/chain"
)

// BenchmarkStandingDue measures a look at a market in which 1000 of 50 000 positions are due already, as after a crash
// that nobody has dealt with yet: each tick judges them again. It is what ticks wait for when all markets have crashed.
func BenchmarkStandingDue(b *testing.B) {
	p, tick := burst(b)
	tick(4500)
	reached := p.book.reached(map[chain.Address]bool{eth: true})
	for b.Loop() {
		m := p.moment()
		if _, err := p.finder.findAll(b.Context(), maps.Keys(reached), m); err != nil {
			b.Fatal(err)
		}
	}
	if got := len(p.live.all()); got != burstDue {
		b.Errorf("%d due", got)
	}
}
