package price

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

const (
	// Window is how far back a Board remembers, counted from each token's newest report.
	Window = 10 * time.Minute
	// MaxSpread is how far apart the reports of one transaction may be: the exchange's MAX_ORACLE_TIMESTAMP_RANGE.
	MaxSpread = 60 * time.Second
)

// Board remembers the reports of the last Window of each token. It is safe for concurrent use. Use NewBoard.
type Board struct {
	mu     sync.RWMutex
	tokens map[chain.Address][]Report // ascending by time, no two of the same
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{tokens: map[chain.Address][]Report{}} }

// Add gives the board a report and tells whether it learnt something: false for a report of a moment it knows, and for one that lies before the
// token's window. Reports may come in any order.
func (b *Board) Add(r Report) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.tokens[r.Token]
	at, known := slices.BinarySearchFunc(kept, r.TimeMs, func(k Report, ms uint64) int { return cmp.Compare(k.TimeMs, ms) })
	if known || len(kept) > 0 && r.TimeMs < windowStart(kept) {
		return false
	}
	kept = slices.Insert(kept, at, r)
	start := windowStart(kept)
	expired := slices.IndexFunc(kept, func(k Report) bool { return k.TimeMs >= start })
	b.tokens[r.Token] = slices.Delete(kept, 0, expired)
	return true
}

// windowStart is the oldest time, in ms, that is still remembered.
func windowStart(kept []Report) uint64 {
	newest := kept[len(kept)-1].TimeMs
	return newest - min(newest, uint64(Window.Milliseconds()))
}

// Latest returns the newest report of a token.
func (b *Board) Latest(token chain.Address) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	kept := b.tokens[token]
	if len(kept) == 0 {
		return Report{}, false
	}
	return kept[len(kept)-1], true
}

// FirstAtOrAfter returns the first report of a token whose second, as the contract sees it, is at or after the given one. It returns none while there
// is none, and none for a second before the window: what came first then is no longer known.
//
// A board that has not been fed since before the second cannot know that a report it never saw was the first.
func (b *Board) FirstAtOrAfter(token chain.Address, second uint64) (r Report, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	kept := b.tokens[token]
	at, _ := slices.BinarySearchFunc(kept, second, func(k Report, s uint64) int { return cmp.Compare(k.Second(), s) })
	if at == len(kept) || second*1000 < windowStart(kept) {
		return Report{}, false
	}
	return kept[at], true
}

// Chooser picks the report of a token; Board.Latest is one.
type Chooser func(token chain.Address) (r Report, ok bool)

// AtOrAfter is the chooser of the first report at or after a second.
func (b *Board) AtOrAfter(second uint64) Chooser {
	return func(token chain.Address) (Report, bool) { return b.FirstAtOrAfter(token, second) }
}

// MissingError says that there is no report of a token.
type MissingError struct{ Token chain.Address }

func (e *MissingError) Error() string { return fmt.Sprintf("no price report of %s", e.Token) }

// SpreadError says that reports are too far apart for one transaction.
type SpreadError struct{ Oldest, Newest Report }

func (e *SpreadError) Error() string {
	return fmt.Sprintf("price reports are %d s apart, at most %d are allowed: %s at second %d, %s at second %d",
		e.Newest.Second()-e.Oldest.Second(), int(MaxSpread.Seconds()), e.Oldest.Token, e.Oldest.Second(), e.Newest.Token, e.Newest.Second())
}

// Set returns the chosen report of each token, each token once, in the order in which they are first named. The reports fit one transaction; the error
// is a MissingError or a SpreadError otherwise. No tokens give an empty set.
func Set(tokens []chain.Address, choose Chooser) ([]Report, error) {
	var set []Report
	for _, token := range tokens {
		if slices.ContainsFunc(set, func(r Report) bool { return r.Token == token }) {
			continue
		}
		r, ok := choose(token)
		if !ok {
			return nil, &MissingError{token}
		}
		set = append(set, r)
	}
	if len(set) == 0 {
		return nil, nil
	}
	byTime := func(a, b Report) int { return cmp.Compare(a.TimeMs, b.TimeMs) }
	oldest, newest := slices.MinFunc(set, byTime), slices.MaxFunc(set, byTime)
	if newest.Second()-oldest.Second() > uint64(MaxSpread.Seconds()) {
		return nil, &SpreadError{oldest, newest}
	}
	return set, nil
}
