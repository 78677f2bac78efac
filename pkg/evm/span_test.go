package evm

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A node with a fixed limit is found out within few requests, not asked for more again until the ceiling is old, and
// then tried again once.
func TestSpanLearnsACeiling(t *testing.T) {
	for _, inclusive := range []bool{true, false} {
		s, now, refusals := newSpan(5000), someTime, 0
		const limit = 1000
		try := func() {
			n := s.next()
			if inclusive && n > limit || !inclusive && n > limit-1 { // the second kind counts from the block before
				refusals++
				s.refused(now, n, limit)
				return
			}
			s.worked(now, n)
		}
		for range 100 {
			try()
		}
		if refusals > 2 || s.next() < limit-1 || s.learnt(now) != s.next() {
			t.Errorf("inclusive %t: %d refusals, %d blocks next, learnt %d", inclusive, refusals, s.next(),
				s.learnt(now))
		}
		refusals, now = 0, now.Add(ceilingHolds)
		if s.learnt(now) != 0 {
			t.Error("a ceiling holds for too long")
		}
		for range 50 {
			try()
		}
		if refusals == 0 || refusals > 2 || s.learnt(now) < limit-1 {
			t.Errorf("inclusive %t: %d refusals after the ceiling had become old, learnt %d", inclusive, refusals,
				s.learnt(now))
		}
	}
}

// A node whose limit was raised is asked for more after a while.
func TestSpanWidensAgain(t *testing.T) {
	s, now := newSpan(5000), someTime
	s.refused(now, 5000, 1000)
	now = now.Add(ceilingHolds + time.Second)
	for range 100 {
		s.worked(now, s.next())
	}
	if s.next() != 5000 || s.learnt(now) != 0 {
		t.Errorf("%d blocks next, learnt %d", s.next(), s.learnt(now))
	}
}

// Whatever a node answers, the next size is between one block and the widest, and smaller than what was refused.
func TestSpanAlwaysGetsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		widest := rapid.Uint64Range(1, 20_000).Draw(t, "widest")
		s, now := newSpan(widest), someTime
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second)
			n := rapid.Uint64Range(1, s.next()).Draw(t, "blocks")
			if n > 1 && rapid.Bool().Draw(t, "refused") {
				v := LogsVerdict{
					Class: rapid.SampledFrom([]LogsClass{LogsShrink, LogsSuggested, LogsHalve}).Draw(t, "class"),
					Limit: rapid.SampledFrom([]uint64{0, 1, n - 1, n, n + 1, 1 << 40}).Draw(t, "limit"),
					From:  rapid.Uint64Range(0, 40_000).Draw(t, "from"),
				}
				v.To = v.From + rapid.Uint64Range(0, 1<<40).Draw(t, "width")
				if s.advise(now, 1000, 1000+n-1, v); s.next() >= n {
					t.Fatalf("%d blocks after %d were refused with %+v", s.next(), n, v)
				}
			} else {
				s.worked(now, n)
			}
			if size := s.next(); size < 1 || size > widest {
				t.Fatalf("%d blocks next, the widest is %d", size, widest)
			}
		}
	})
}
