package evm

import (
	"sync"
	"time"
)

// bucket limits how often an endpoint is asked, once it has refused: a token bucket that holds one second's worth. Each
// refusal halves the rate and pauses, each second without one adds a request per second. It is safe for concurrent use
// and pure: every time comes from outside.
type bucket struct {
	mu     sync.Mutex
	rate   float64 // requests per second at the moment; 0 is no limit
	tokens float64
	at     time.Time // when tokens was right
	paused time.Time
	pause  time.Duration // of the last refusal; doubles with each one soon after
	asked  float64       // requests per second that were sent lately
}

const (
	firstPause   = time.Second
	longestPause = 10 * time.Second // unless the node asks for more
	mostPause    = time.Minute      // even then
	leastRate    = 1.0
	// forgottenRate is where a learnt limit no longer matters: nobody asks that often.
	forgottenRate = 1000.0
)

// take takes a token, on credit if there is none, and returns how long to wait before using it.
func (b *bucket) take(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.asked++
	if b.rate > 0 {
		b.tokens--
	}
	return b.wait(now)
}

// ready returns how long a request would have to wait now.
func (b *bucket) ready(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	wait := b.wait(now)
	if b.rate > 0 && b.tokens < 1 && b.tokens >= 0 {
		wait = max(wait, b.until(1-b.tokens))
	}
	return wait
}

func (b *bucket) wait(now time.Time) time.Duration {
	wait := max(b.paused.Sub(now), 0)
	if b.rate > 0 && b.tokens < 0 {
		wait = max(wait, b.until(-b.tokens))
	}
	return wait
}

func (b *bucket) until(tokens float64) time.Duration {
	return time.Duration(tokens / b.rate * float64(time.Second))
}

// refill brings the bucket up to now: tokens flow in, and the rate recovers by one request per second each second that
// is no pause.
func (b *bucket) refill(now time.Time) {
	passed := now.Sub(b.at).Seconds()
	if b.at.IsZero() || passed <= 0 {
		b.at = now
		return
	}
	b.asked *= max(0, 1-passed) // what was asked more than a second ago counts no more
	if b.rate > 0 {
		b.tokens = min(b.tokens+passed*b.rate, max(b.rate, 1))
	}
	b.recover(now, passed)
	b.at = now
}

func (b *bucket) recover(now time.Time, passed float64) {
	if b.rate == 0 || now.Before(b.paused) {
		return
	}
	if b.rate += min(passed, now.Sub(b.paused).Seconds()); b.rate >= forgottenRate {
		b.rate = 0
	}
	if now.Sub(b.paused) > mostPause {
		b.pause = 0
	}
}

// refused notes that the node wants fewer requests, and for how long none at all; 0 if it did not say. Refusals of
// requests that were under way together count once.
func (b *bucket) refused(now time.Time, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	if now.Before(b.paused) {
		if pause > 0 {
			b.paused = now.Add(max(b.paused.Sub(now), min(pause, mostPause)))
		}
		return
	}
	was := b.rate
	if was == 0 {
		was = max(b.asked, leastRate)
	}
	b.rate = max(was/2, leastRate)
	b.tokens = min(b.tokens, 0)
	b.pause = min(max(firstPause, 2*b.pause), longestPause)
	if pause <= 0 {
		pause = b.pause
	}
	b.paused = now.Add(min(pause, mostPause))
}

// learnt returns the limit the node has taught, in requests per second; 0 if none is in force.
func (b *bucket) learnt(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return b.rate
}
