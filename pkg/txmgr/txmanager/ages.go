package txmanager

import (
	"maps"
	"time"

	"perpkeeper/pkg/txmgr/txm"
)

// confirmTimeout is after how long without a receipt people are notified (LIQ-10). The transaction goes on being
// broadcast.
const confirmTimeout = 10 * time.Second

// ages are since when things have been as they are with what is in flight, as this lease term has seen it.
type ages struct {
	clock   func() time.Time
	timeout time.Duration  // after how long without a receipt people are told (LIQ-10); it frees nothing
	known   map[int64]*age // by intent
}

// settleAfter is how long after a reorg our own state may still show the branch that was left. It is older than any
// state that the gate of new jobs takes for fresh.
const settleAfter = 10 * time.Second

type age struct {
	seen     time.Time // since when it is known to be in flight
	missing  time.Time // since when its nonce is known to be spent without a receipt of ours; zero while it is not
	lost     time.Time // when its receipt was taken back; zero while none was
	reported bool      // people were told that it waits for its receipt
}

func newAges(clock func() time.Time, timeout time.Duration) ages {
	return ages{clock: clock, timeout: timeout, known: map[int64]*age{}}
}

func (a ages) see(intent int64) *age {
	if a.known[intent] == nil {
		a.known[intent] = &age{seen: a.clock()}
	}
	return a.known[intent]
}

// keep forgets all other intents.
func (a ages) keep(flying map[int64]bool) {
	maps.DeleteFunc(a.known, func(id int64, _ *age) bool { return !flying[id] })
}

// late reports, once, that an intent has been in flight for longer than the timeout.
func (a ages) late(intent int64) bool {
	of := a.see(intent)
	if of.reported || a.clock().Sub(of.seen) < a.timeout {
		return false
	}
	of.reported = true
	return true
}

// afterReorg reports whether a receipt was taken back so recently that our own state may still show what it did.
func (a ages) afterReorg(intent int64) bool {
	of := a.see(intent)
	return !of.lost.IsZero() && a.clock().Sub(of.lost) < settleAfter
}

// missingFor is how long a spent nonce has been without a receipt of ours.
func (a ages) missingFor(f txm.PendingTx, s txm.Observation) time.Duration {
	of := a.see(f.Intent.ID)
	switch {
	case s.Receipt != nil || s.FinalNonce <= f.Intent.Nonce:
		of.missing = time.Time{}
		return 0
	case of.missing.IsZero():
		of.missing = a.clock()
	}
	return a.clock().Sub(of.missing)
}
