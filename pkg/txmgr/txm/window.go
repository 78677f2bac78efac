package txm

// Window is how far the limits of what is pending have left their quiet values, by what the chain takes while many
// transactions wait at once. It grows by a step with each block that takes what was sent, and is halved where the chain
// shows that it takes no more: additive increase and multiplicative decrease, as congestion windows of networks have
// it (RFC 5681). The zero Window is the quiet one.
type Window struct {
	level      int    // 0 to windowLevels
	grown, cut uint64 // the blocks of the last growth and the last cut
}

const (
	windowLevels = 64
	// windowStep has a window open in 8 blocks.
	windowStep = windowLevels / 8
	// windowFlow is for how many blocks what is broadcast may wait while the window grows: as long as it takes to be
	// mined where nothing is in its way.
	windowFlow = 2
	// windowStall is after how many blocks what is broadcast is taken for more than the chain takes.
	windowStall = 6
)

// Taken is what a block shows of what was sent.
type Taken struct {
	Block uint64
	// Landed is how many transactions the chain has taken since it was last asked.
	Landed uint64
	// Waiting is for how many blocks the one has been broadcast that is longest without being mined; 0 for none.
	Waiting uint64
	// Refused is true when nodes take no more of the signer's transactions.
	Refused bool
}

// Observe returns the window after a block. Several signers may see the same block: it grows once. After a cut it rests
// until what was sent before the cut can have landed, so that one jam is not punished twice.
func (w Window) Observe(t Taken) Window {
	if w.cut > 0 && t.Block < w.cut+windowStall {
		return w
	}
	switch {
	case t.Refused || t.Waiting >= windowStall:
		return Window{level: w.level / 2, grown: w.grown, cut: t.Block}
	case t.Landed > 0 && t.Waiting <= windowFlow && t.Block > w.grown:
		return Window{level: min(w.level+windowStep, windowLevels), grown: t.Block, cut: w.cut}
	}
	return w
}

// Of is where a limit stands between its quiet value and the most it may be. A most that is not above changes nothing.
func (w Window) Of(quiet, most int) int { return quiet + max(0, most-quiet)*w.level/windowLevels }
