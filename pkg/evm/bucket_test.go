package evm

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketWithoutLimit(t *testing.T) {
	b := newBucket(0)
	for range 10_000 {
		if wait := b.take(someTime); wait != 0 {
			t.Fatalf("a wait of %s", wait)
		}
	}
}

// Whatever is asked when, no more than one second's worth plus the rate times the time passes.
func TestBucketKeepsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 50).Draw(t, "rate")
		b, now := newBucket(rate), someTime
		begun := now
		for i, ms := range rapid.SliceOfN(rapid.IntRange(0, 300), 1, 300).Draw(t, "pauses") {
			now = now.Add(time.Duration(ms) * time.Millisecond)
			used := now.Add(b.take(now))
			if most := float64(rate) + float64(rate)*used.Sub(begun).Seconds() + 1; float64(i+1) > most {
				t.Fatalf("request %d is sent %s after the first; at %d per second", i+1, used.Sub(begun), rate)
			}
		}
	})
}

// A refusal halves the rate and pauses; each second without one gives one request per second back, up to what is
// configured.
func TestBucketLearns(t *testing.T) {
	b, now := newBucket(20), someTime
	b.take(now)
	b.refused(now, 0)
	b.refused(now.Add(time.Millisecond), 0) // of requests that were under way together
	if got := b.learnt(now); got != 10 {
		t.Errorf("rate %f after a refusal", got)
	}
	if wait := b.ready(now); wait != firstPause {
		t.Errorf("a pause of %s", wait)
	}
	now = now.Add(firstPause + 4*time.Second)
	if got := b.learnt(now); got < 13.9 || got > 14.1 {
		t.Errorf("rate %f four seconds later", got)
	}
	b.refused(now, 0)
	if wait := b.ready(now); wait != 2*firstPause {
		t.Errorf("a second pause of %s", wait)
	}
	b.refused(now, 30*time.Second)
	if wait := b.ready(now); wait != 30*time.Second {
		t.Errorf("a pause of %s where the node asked for 30 s", wait)
	}
	for range 40 {
		now = now.Add(2 * time.Second)
		b.ready(now)
	}
	if got := b.learnt(now); got != 0 || b.rate != 20 {
		t.Errorf("a limit of %f is still learnt, rate %f", got, b.rate)
	}
}

// Without a configured limit the rate at the refusal is what is halved.
func TestBucketLearnsALimit(t *testing.T) {
	b, now := newBucket(0), someTime
	for range 100 {
		b.take(now)
		now = now.Add(10 * time.Millisecond)
	}
	b.refused(now, 0)
	if got := b.learnt(now); got < 20 || got > 60 {
		t.Errorf("rate %f after a refusal at 100 per second", got)
	}
	now = now.Add(firstPause)
	granted := 0
	for range 1000 {
		if b.ready(now) == 0 {
			b.take(now)
			granted++
		}
		now = now.Add(time.Millisecond)
	}
	if granted < 15 || granted > 70 {
		t.Errorf("%d requests in the second after the pause", granted)
	}
}
