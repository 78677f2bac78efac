package evm

import (
	"testing"
	"time"
)

// A refusal halves the rate and pauses; each second without one gives one request per second back.
func TestBucketLearns(t *testing.T) {
	b, now := &bucket{}, someTime
	for range 20 {
		if wait := b.take(now); wait != 0 {
			t.Fatalf("a wait of %s", wait)
		}
	}
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
	now = now.Add(forgottenRate * time.Second)
	if b.ready(now); b.learnt(now.Add(30*time.Second)) != 0 {
		t.Errorf("a limit of %f is still learnt", b.rate)
	}
}

// The rate at the refusal is what is halved, and what is granted afterwards.
func TestBucketLearnsALimit(t *testing.T) {
	b, now := &bucket{}, someTime
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
