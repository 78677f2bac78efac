package scanner

import "testing"

func TestRangesBecomeAsWideAsTheyAreEmpty(t *testing.T) {
	w := newRangeWidth(4000)
	for _, step := range []struct {
		bytes int
		want  uint64
	}{{80 * 256, 512}, {80 * 512, 1024}, {80 * 1024, 2048}, {80 * 2048, 4000}, {8 << 20, 500}, {8 << 20, 62},
		{1, 124}, {1 << 40, 1}} {
		blocks := w.next(1 << 20)
		if w.learn(int(blocks), step.bytes); w.next(1<<20) != step.want || w.next(1) != 1 {
			t.Errorf("after %d blocks of %d bytes: ranges of %d blocks, want %d", blocks, step.bytes, w.next(1<<20),
				step.want)
		}
	}
}
