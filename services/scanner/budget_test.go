package scanner

import (
	"context"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// A budget never lets more blocks out than it may, unless nothing else is under way, and ranges get as wide as they
// should be full.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Backfill{
			MaxRange:  rapid.Uint64Range(1, 3000).Draw(t, "max range"),
			MaxBlocks: rapid.IntRange(1, 10_000).Draw(t, "max blocks"),
			MaxBytes:  rapid.IntRange(1, 8<<20).Draw(t, "max bytes"),
		}
		b := newBudget(cfg)
		type lent struct{ blocks, bytes int }
		var reading, waiting []lent
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				blocks, bytes := 0, 0
				for _, l := range reading {
					blocks += l.blocks
				}
				for _, l := range waiting {
					blocks, bytes = blocks+l.blocks, bytes+l.bytes
				}
				if b.blocks != blocks || b.bytes != bytes || b.width < 1 || b.width > cfg.MaxRange {
					t.Fatalf("it counts %d blocks, %d bytes, width %d; there are %d and %d", b.blocks, b.bytes, b.width,
						blocks, bytes)
				}
				if blocks > cfg.MaxBlocks && len(reading)+len(waiting) > 1 {
					t.Fatalf("%d blocks are out, %d may be", blocks, cfg.MaxBlocks)
				}
			},
			"take": func(t *rapid.T) {
				most := rapid.Uint64Range(1, 5000).Draw(t, "most")
				full := b.bytes >= cfg.MaxBytes
				got := int(b.tryTake(most))
				if got > int(most) || got == 0 && len(reading)+len(waiting) == 0 || got > 0 && full && b.blocks > got {
					t.Fatalf("got %d of %d", got, most)
				}
				if got > 0 {
					reading = append(reading, lent{blocks: got})
				}
			},
			"hold": func(t *rapid.T) {
				if len(reading) == 0 {
					t.Skip()
				}
				l := lent{reading[0].blocks, rapid.IntRange(0, 4<<20).Draw(t, "bytes")}
				before := b.width
				b.hold(l.blocks, l.bytes)
				if b.width > 2*before {
					t.Fatalf("from %d to %d blocks at once", before, b.width)
				}
				reading, waiting = reading[1:], append(waiting, l)
			},
			"give": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip()
				}
				b.give(waiting[0].blocks, waiting[0].bytes)
				waiting = waiting[1:]
			},
		})
	})
}

func TestRangesBecomeAsWideAsTheyAreEmpty(t *testing.T) {
	b := newBudget(Backfill{MaxRange: 4000, MaxBlocks: 1 << 20, MaxBytes: 1 << 30})
	for _, step := range []struct {
		bytes int
		want  uint64
	}{{80 * 256, 512}, {80 * 512, 1024}, {80 * 1024, 2048}, {80 * 2048, 4000}, {8 << 20, 500}, {8 << 20, 62},
		{1, 124}} {
		blocks, err := b.take(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		b.hold(int(blocks), step.bytes)
		b.give(int(blocks), step.bytes)
		if b.width != step.want {
			t.Errorf("after %d blocks of %d bytes: ranges of %d blocks, want %d", blocks, step.bytes, b.width,
				step.want)
		}
	}
}

// Whoever waits for room goes on when some is given back, or when it is told to end.
func TestWaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(Backfill{MaxRange: 10, MaxBlocks: 10, MaxBytes: 1 << 20})
		first, err := b.take(t.Context(), 10)
		if err != nil || first != 10 {
			t.Fatal(first, err)
		}
		got := make(chan uint64)
		go func() {
			n, _ := b.take(t.Context(), 10)
			got <- n
		}()
		synctest.Wait()
		select {
		case n := <-got:
			t.Fatalf("%d blocks were lent although none was left", n)
		default:
		}
		b.hold(10, 5)
		b.give(10, 5)
		if n := <-got; n != 10 {
			t.Errorf("%d blocks", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.take(ctx, 10); err == nil {
			t.Error("room was found where none is, and nobody waits")
		}
	})
}
