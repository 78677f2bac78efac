package txmanager

import (
	"maps"
	"time"

	"perpkeeper/pkg/txm"
)

// ages are since when things have been as they are with what is in flight, as this tenure has seen it.
type ages struct {
	clock func() time.Time
	// timeout is after how long without a receipt people are told (LIQ-10). It frees nothing.
	timeout time.Duration

	missing map[int64]time.Time // since when a nonce is known to be spent without a receipt of ours
	seen    map[int64]time.Time // since when an intent is known to be in flight
	told    map[int64]bool      // intents of which people were told that they wait for their receipt
}

func newAges(clock func() time.Time, timeout time.Duration) ages {
	return ages{clock: clock, timeout: timeout,
		missing: map[int64]time.Time{}, seen: map[int64]time.Time{}, told: map[int64]bool{}}
}

// see notes that an intent is in flight.
func (a ages) see(intent int64) {
	if _, known := a.seen[intent]; !known {
		a.seen[intent] = a.clock()
	}
}

// keep forgets all other intents.
func (a ages) keep(flying map[int64]bool) {
	maps.DeleteFunc(a.missing, func(id int64, _ time.Time) bool { return !flying[id] })
	maps.DeleteFunc(a.seen, func(id int64, _ time.Time) bool { return !flying[id] })
	maps.DeleteFunc(a.told, func(id int64, _ bool) bool { return !flying[id] })
}

// late tells, once, that an intent has been in flight for longer than the timeout.
func (a ages) late(intent int64) bool {
	if a.clock().Sub(a.seen[intent]) < a.timeout || a.told[intent] {
		return false
	}
	a.told[intent] = true
	return true
}

// missingFor is how long a spent nonce has been without a receipt of ours.
func (a ages) missingFor(f txm.Flight, s txm.Sight) time.Duration {
	if s.Receipt != nil || s.FinalNonce <= f.Intent.Nonce {
		delete(a.missing, f.Intent.ID)
		return 0
	}
	since, known := a.missing[f.Intent.ID]
	if !known {
		since = a.clock()
		a.missing[f.Intent.ID] = since
	}
	return a.clock().Sub(since)
}
