package agreement

import (
	"time"

	"perpkeeper/pkg/chain"
)

const (
	// Ahead is by how much chain time a head may be ahead of what is known of the chain's clock before a second host
	// has to name one like it.
	Ahead = 3 * time.Second
	// fastest is the least time between two blocks of any chain that is followed: BSC takes 450 ms.
	fastest = 100 * time.Millisecond
	// silent is after how long a host that names no newer block contradicts nobody any more.
	silent = 5 * time.Second
	// drift is by how much this machine's clock may differ from the chain's for it to be heeded at all.
	drift = time.Minute
)

// Heads judges the newest blocks that hosts name. One host may be ahead of the others by what time can have passed, and
// no more: neither in time nor in blocks. The chain's clock is what two hosts have borne out, and runs on by this
// machine's monotonic clock. While no two have borne out anything, this machine's own clock decides between two that
// differ, and a host that is the only one to name new blocks is believed.
//
// The zero value is ready to use, by one goroutine at a time.
type Heads struct {
	newest map[string]observation
	clock  observation // borne out by two hosts
}

// observation is a block and when it was named.
type observation struct {
	head chain.BlockRef
	at   time.Time
}

// time is the chain's time (Unix ms) at a moment, going by a block that was new when it was named.
func (s observation) time(at time.Time) int64 {
	return int64(s.head.TimeMs) + at.Sub(s.at).Milliseconds()
}

// Note notes the newest block that a host names at a moment, which must carry a monotonic reading.
func (h *Heads) Note(host string, head chain.BlockRef, at time.Time) {
	if h.newest == nil {
		h.newest = map[string]observation{}
	}
	if head.Number > h.newest[host].head.Number || head.TimeMs < h.newest[host].head.TimeMs {
		h.newest[host] = observation{head, at}
	}
}

// Believe notes a head like [Heads.Note], and reports whether it can be the chain's.
func (h *Heads) Believe(host string, head chain.BlockRef, at time.Time) bool {
	h.Note(host, head, at)
	others := 0
	for other, s := range h.newest {
		if other == host || at.Sub(s.at) > silent {
			continue
		}
		others++
		if near(head, s.head) {
			h.bear(lower(head, s.head), at)
			return true
		}
	}
	return h.possible(head, at, others)
}

// possible reports whether a block that no other host has reached can be the chain's.
func (h *Heads) possible(head chain.BlockRef, at time.Time, others int) bool {
	wall, limit := at.UnixMilli(), Ahead.Milliseconds()
	if h.clock.at.IsZero() {
		return others == 0 || int64(head.TimeMs) <= wall+limit || h.lowest(head, at)
	}
	now := h.clock.time(at)
	if apart := wall - now; apart > 0 && apart < drift.Milliseconds() {
		now = wall
	}
	passed := now + limit - int64(h.clock.head.TimeMs)
	return int64(head.TimeMs) <= now+limit && int64(head.Number) <= int64(h.clock.head.Number)+
		passed/fastest.Milliseconds()
}

// lowest reports whether no host names an older block.
func (h *Heads) lowest(head chain.BlockRef, at time.Time) bool {
	for _, s := range h.newest {
		if at.Sub(s.at) <= silent && s.head.TimeMs < head.TimeMs {
			return false
		}
	}
	return true
}

// bear sets the clock by what two hosts have reached, unless it is further.
func (h *Heads) bear(head chain.BlockRef, at time.Time) {
	if h.clock.at.IsZero() || int64(head.TimeMs) >= h.clock.time(at) || at.Sub(h.clock.at) > drift &&
		head.Number > h.clock.head.Number {
		h.clock = observation{head, at}
	}
}

// near reports whether two hosts can be looking at one chain at one moment.
func near(a, b chain.BlockRef) bool {
	return max(a.TimeMs, b.TimeMs)-min(a.TimeMs, b.TimeMs) <= uint64(Ahead.Milliseconds()) &&
		max(a.Number, b.Number)-min(a.Number, b.Number) <= uint64(Ahead/fastest)
}

func lower(a, b chain.BlockRef) chain.BlockRef {
	if b.TimeMs < a.TimeMs {
		return b
	}
	return a
}
