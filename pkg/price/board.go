package price

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

const (
	// Window is how far back a Board remembers, counted from each token's newest report.
	Window = 10 * time.Minute
	// maxReports bounds how many reports of a token a Board remembers; the window of a token that has more is shorter.
	maxReports = 20_000
)

// Board stores the reports of the last Window of each token, in memory. It is safe for concurrent use. Looking up takes
// logarithmic time, adding a report that is newer than the others constant time on average. Use NewBoard.
type Board struct {
	mu     sync.RWMutex
	most   int
	tokens map[chain.Address]*history
}

// history is the reports of one token.
type history struct {
	kept  []Report // ascending by time, no two of the same
	floor uint64   // reports from before this time, in ms, may have been forgotten
}

// NewBoard returns an empty board.
func NewBoard() *Board { return newBoard(maxReports) }

func newBoard(most int) *Board { return &Board{most: most, tokens: map[chain.Address]*history{}} }

// Add stores a report and returns whether it was new: false for a report of a time that is already stored, and for one
// from before the token's window. Reports may come in any order.
func (b *Board) Add(r Report) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.tokens[r.Token]
	if h == nil {
		h = &history{}
		b.tokens[r.Token] = h
	}
	at, known := h.search(r.TimeMs)
	if known || r.TimeMs < h.floor {
		return false
	}
	h.kept = slices.Insert(h.kept, at, r)
	h.forget(b.most)
	return r.TimeMs >= h.floor
}

// forget drops what is before the window or too many. The room of what is dropped is used again when the slice grows
// next.
func (h *history) forget(most int) {
	newest := h.kept[len(h.kept)-1].TimeMs
	h.floor = max(h.floor, newest-min(newest, uint64(Window.Milliseconds())))
	expired, _ := h.search(h.floor)
	if surplus := len(h.kept) - most; surplus > expired {
		expired = surplus
		h.floor = h.kept[surplus-1].TimeMs + 1
	}
	clear(h.kept[:expired]) // their data must not stay in memory
	h.kept = h.kept[expired:]
}

// search returns the index of the first report at or after a time in ms, and whether there is one of that time.
func (h *history) search(ms uint64) (at int, known bool) {
	return slices.BinarySearchFunc(h.kept, ms, func(k Report, ms uint64) int { return cmp.Compare(k.TimeMs, ms) })
}

// Latest returns the newest report of a token.
func (b *Board) Latest(token chain.Address) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.tokens[token]
	if h == nil {
		return Report{}, false
	}
	return h.kept[len(h.kept)-1], true
}

// Reports returns the newest report of every token, in no order.
func (b *Board) Reports() []Report {
	b.mu.RLock()
	defer b.mu.RUnlock()
	reports := make([]Report, 0, len(b.tokens))
	for _, h := range b.tokens {
		reports = append(reports, h.kept[len(h.kept)-1])
	}
	return reports
}

// Newest returns the time (Unix ms) of the newest report of every token, in no order.
func (b *Board) Newest() []uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	times := make([]uint64, 0, len(b.tokens))
	for _, h := range b.tokens {
		times = append(times, h.kept[len(h.kept)-1].TimeMs)
	}
	return times
}

// At returns the report of a token with exactly this time, in ms.
func (b *Board) At(token chain.Address, ms uint64) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.tokens[token]
	if h == nil {
		return Report{}, false
	}
	at, known := h.search(ms)
	if !known {
		return Report{}, false
	}
	return h.kept[at], true
}

// firstAtOrAfter returns the first report of a token whose second, as the contract sees it, is at or after the given
// one. It returns none while there is none, and none for a second before the window: what came first then is no longer
// known.
//
// A board that was started after the second cannot know of an earlier report that it never got.
func (b *Board) firstAtOrAfter(token chain.Address, second uint64) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.tokens[token]
	if h == nil || second < (h.floor+999)/1000 {
		return Report{}, false
	}
	at, _ := slices.BinarySearchFunc(h.kept, second, func(k Report, s uint64) int { return cmp.Compare(k.Second(), s) })
	if at == len(h.kept) {
		return Report{}, false
	}
	return h.kept[at], true
}

// NewestWithin returns the newest report of a token whose second is within two seconds, both included.
func (b *Board) NewestWithin(token chain.Address, from, to uint64) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	h := b.tokens[token]
	if h == nil {
		return Report{}, false
	}
	at := sort.Search(len(h.kept), func(i int) bool { return h.kept[i].Second() > to })
	if at == 0 || h.kept[at-1].Second() < from {
		return Report{}, false
	}
	return h.kept[at-1], true
}
