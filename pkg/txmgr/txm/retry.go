package txm

import (
	"time"

	"perpkeeper/pkg/job"
)

// Retries is how many attempts in a row may follow one that failed for a cause that may pass (LIQ-10).
const Retries = 3

// The pauses between two attempts of a job.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
	// longestRetry is how long at most a job rests that goes on failing on the chain.
	longestRetry = 10 * time.Minute
)

// enoughDoublings make the longest rest of the last one.
const enoughDoublings = 5

// GivenUp reports whether an attempt that ended so, after that many failed ones before it, was the last of its kind:
// whoever operates the keeper has to look. A planner's word after the rest begins another attempt all the same.
func GivenUp(o job.Outcome, tries uint32) bool {
	return o.Failure() && (!transient(o) || tries >= Retries) || o == job.Foreign && tries >= Retries
}

// CoolDown is how long, on the chain's clock, after the end of an attempt its job may not be taken up again. Transient
// failures wait 2, 4, 8 seconds (LIQ-10), others and the last one half a minute. A job that goes on failing on the
// chain, although its simulated call succeeds each time, waits twice as long after each further failure, up to ten
// minutes: every try costs gas, and in the beginning a cause that passes has passed. What was done, here or elsewhere,
// and what was withdrawn, waits for the time settled, so that the state derived from the chain can catch up. A
// condition that did not hold may hold at the next price.
func CoolDown(o job.Outcome, tries uint32, settled time.Duration) time.Duration {
	switch {
	case o == job.DroppedRecovered:
		return 0
	case o == job.Reverted && tries >= Retries:
		return min(lastRetry<<min(tries-Retries, enoughDoublings), longestRetry)
	case GivenUp(o, tries):
		return lastRetry
	case transient(o):
		return firstRetry << tries
	}
	return settled
}

// Rest is what comes after an attempt.
type Rest struct {
	// RetryAfterMs is the chain's time (ms) after which the job has to be found for the next attempt.
	RetryAfterMs uint64
	// GivenUp is true when no further attempt is tried by itself: see [GivenUp].
	GivenUp bool
}

// After returns the rest after an attempt that ended so, at the chain's time nowMs, after that many failed ones; see
// [CoolDown].
func After(o job.Outcome, tries uint32, nowMs uint64, settled time.Duration) Rest {
	return Rest{RetryAfterMs: nowMs + uint64(CoolDown(o, tries, settled).Milliseconds()), GivenUp: GivenUp(o, tries)}
}
