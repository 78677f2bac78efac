package agreement

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
)

// A matrix of heads: what hosts name one after the other, and which of it is believed. Blocks take 450 ms; block 1000
// is made when the clock of the test, and of the machine, stands at nought, unless the machine's is wrong.
func TestHeads(t *testing.T) {
	type word struct {
		at     time.Duration // since the beginning
		host   string
		number int // of the block
		shift  time.Duration
		want   bool
	}
	honest := func(host string, at time.Duration) word {
		return word{at, host, 1000 + int(at/(450*time.Millisecond)), 0, true}
	}
	behind := func(host string, at, by time.Duration) word {
		w := honest(host, at-by)
		w.at = at
		return w
	}
	lie := func(host string, at time.Duration, blocks int, shift time.Duration) word {
		w := honest(host, at)
		w.number, w.shift, w.want = w.number+blocks, shift, false
		return w
	}
	const s = time.Second
	for name, c := range map[string]struct {
		wrong time.Duration // by how much this machine's clock is
		words []word
	}{
		"two go along": {0,
			[]word{honest("a", 0), honest("b", 0), honest("a", 450*time.Millisecond), honest("b", s),
				honest("a", 20*s)}},
		"one makes up ten minutes": {0,
			[]word{honest("b", 0), honest("c", 0), lie("a", s, 100, 10*time.Minute), honest("b", s)}},
		"it does so before others speak": {0, []word{{0, "a", 1100, 10 * time.Minute, true}, honest("b", 0),
			honest("c", 0), lie("a", s, 100, 10*time.Minute)}},
		"one of two does": {0, []word{honest("b", 0), lie("a", 0, 100, 10*time.Minute),
			honest("b", s), lie("a", 2*s, 100, 10*time.Minute)}},
		"it creeps ahead": {0,
			[]word{honest("a", 0), honest("b", 0), {s, "a", 1005, 2 * s, true}, lie("a", 2*s, 8, 4*s),
				lie("a", 3*s, 12, 6*s)}},
		"it makes up blocks and no time": {0, []word{honest("a", 0), honest("b", 0), lie("a", s, 1000, 0)}},
		"one is behind": {0, []word{honest("a", 0), honest("b", 0), behind("b", 30*s, 25*s),
			honest("a", 30*s), honest("a", 40*s)}},
		"one is behind from the first": {0,
			[]word{behind("b", 30*s, 25*s), honest("a", 30*s), behind("b", 31*s, 25*s), honest("a", 31*s)}},
		"one has stopped long ago": {0, []word{behind("b", 3600*s, 3500*s), honest("a", 3600*s)}},
		"the machine's clock is behind": {-time.Hour, []word{honest("a", 0), honest("b", 0), honest("a", 5*s),
			lie("b", 5*s, 100, 10*time.Minute), honest("b", 6*s)}},
		"the machine's clock is far ahead": {time.Hour,
			[]word{honest("a", 0), honest("b", 0), lie("a", s, 100, 10*time.Minute), honest("b", 5*s)}},
		"both stand still for a while": {0, []word{honest("a", 0), honest("b", 0), honest("a", 300*s),
			honest("b", 300*s)}},
		"the chain leaps, as both come to say": {0,
			[]word{honest("a", 0), honest("b", 0), {s, "a", 1500, 60 * s, false}, {s, "b", 1500, 60 * s, true},
				{s, "a", 1501, 60 * s, true}}},
		"one goes back, the other is not doubted": {0,
			[]word{honest("a", 5*s), honest("b", 5*s), {6 * s, "b", 700, -130 * s, true}, honest("a", 6*s)}},
		"the only one that speaks": {-time.Hour, []word{honest("a", 0), {2 * s, "a", 5000, time.Hour, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			begun, h := time.Now(), Heads{}
			for i, w := range c.words {
				head := chain.BlockRef{Number: uint64(w.number), Hash: chain.Hash{byte(i)}}
				head.TimeMs = uint64(begun.Add(-c.wrong + time.Duration(w.number-1000)*450*time.Millisecond).
					UnixMilli())
				if w.shift != 0 { // what it says of the time is made up as well
					head.TimeMs = uint64(begun.Add(-c.wrong + w.at + w.shift).UnixMilli())
				}
				if got := h.Believe(w.host, head, begun.Add(w.at)); got != w.want {
					t.Errorf("word %d: %t of %s at %s", i, got, w.host, w.at)
				}
			}
		})
	}
}
