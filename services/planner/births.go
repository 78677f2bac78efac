package planner

// births remembers since when the condition of a price-born job has held without a break (TIER-9): the time, in whole seconds of the
// price source, of the first report at which it held. A condition that breaks is born anew.
type births struct {
	held, holding map[string]uint64
}

// begin starts a pass.
func (b *births) begin() { b.held, b.holding = b.holding, map[string]uint64{} }

// of returns the birth (ms) of a job whose condition holds at a report of this time.
func (b *births) of(id string, reportMs uint64) uint64 {
	birth, known := b.held[id]
	if !known {
		birth = reportMs / 1000 * 1000
	}
	b.holding[id] = birth
	return birth
}

// end forgets the jobs that were not named since begin.
func (b *births) end() { b.held = nil }
