package planner

import (
	"errors"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/risk/liquidation"
)

// book is what a planner knows: everybody's markets, measures and parameters, the UI fees that its orders name, and
// what waits in its shards. It stands for one block. It is for one goroutine at a time.
type book struct {
	block      chain.BlockRef // zero until there is a state
	generation uint32
	seen       pg.Seen // how far the state has been taken in
	rows       rowIndex
	uiFees     map[chain.Hash]bool // keys of those that are among the rows, or were never set
	shards     map[int]*shard      // by partition
	partitions int                 // that there are

	armed   chain.Uint // the indexes yield positions below this margin ratio
	glvs    due.Glvs
	byToken map[chain.Address][]chain.Address // the markets whose jobs a token's price decides
}

func newBook(armed chain.Uint) *book {
	return &book{
		rows: rowIndex{}, uiFees: map[chain.Hash]bool{}, armed: armed, shards: map[int]*shard{},
		byToken: map[chain.Address][]chain.Address{},
	}
}

// rowIndex holds the rows that belong to everybody.
type rowIndex map[perp.RowKey]perp.Row

// Get implements [perp.Rows].
func (x rowIndex) Get(k perp.RowKey) perp.Row { return x[k] }

// shard returns that of a partition.
func (b *book) shard(partition int) *shard {
	s, known := b.shards[partition]
	if !known {
		s = newShard(b.armed)
		b.shards[partition] = s
	}
	return s
}

// release lets go of the shards of all other partitions, and of all that waits there.
func (b *book) release(mine []int) {
	maps.DeleteFunc(b.shards, func(partition int, _ *shard) bool { return !slices.Contains(mine, partition) })
	b.seen = b.seen.Only(mine)
}

// missing returns those of the partitions that have not been loaded.
func (b *book) missing(mine []int) []int {
	return slices.DeleteFunc(slices.Clone(mine),
		func(partition int) bool { return slices.Contains(b.seen.Partitions, partition) })
}

// position looks a position up.
func (b *book) position(key chain.Hash) (perp.Position, bool) {
	for _, s := range b.shards {
		if p, known := s.index.Get(key); known {
			return p, true
		}
	}
	return perp.Position{}, false
}

// positions yields the open positions of a market.
func (b *book) positions(market chain.Address) func(yield func(*perp.Position) bool) {
	return func(yield func(*perp.Position) bool) {
		for _, s := range b.shards {
			for p := range s.index.Each(market) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// candidates returns the positions of a market near their liquidation, most urgent first (see
// [liquidation.Index.Candidates]).
func (b *book) candidates(market chain.Address, view *perp.View) (found []liquidation.Candidate, failures error) {
	parts := make([][]liquidation.Candidate, 0, len(b.shards))
	for _, s := range b.shards {
		near, failed := s.index.Candidates(market, view)
		parts, failures = append(parts, near), errors.Join(failures, failed)
	}
	found = slices.Concat(parts...)
	liquidation.MostUrgentFirst(found)
	return found, failures
}

// count is how much waits in all shards.
func (b *book) count() (positions, orders, requests int) {
	for _, s := range b.shards {
		positions, orders, requests = positions+s.index.Len(), orders+len(s.orders), requests+len(s.requests)
	}
	return positions, orders, requests
}

// reached returns the markets whose jobs a change of these tokens' prices may decide.
func (b *book) reached(tokens map[chain.Address]bool) map[chain.Address]bool {
	markets := map[chain.Address]bool{}
	for token := range tokens {
		for _, m := range b.byToken[token] {
			markets[m] = true
		}
	}
	for _, s := range b.shards {
		if s.swaps.Follows(b.rows, tokens) {
			markets[noMarket] = true
		}
	}
	return markets
}

// unpriced counts the tokens that a market needs which is not disabled, and of which there is no report at all: nothing
// of these markets is executed. Most often the exchange has added a market, and no source of prices names its token.
func (b *book) unpriced(newest func(chain.Address) (due.Quote, bool)) (count int) {
	for token, markets := range b.byToken {
		if _, reported := newest(token); reported || token.IsZero() { // a market that only swaps has no index token
			continue
		}
		if slices.ContainsFunc(markets, func(m chain.Address) bool { return !perp.Disabled(b.rows, m) }) {
			count++
		}
	}
	return count
}

// noMarket is that of orders that only swap.
var noMarket chain.Address

// indexed returns the markets that have positions or once had.
func (b *book) indexed() map[chain.Address]bool {
	markets := map[chain.Address]bool{}
	for _, s := range b.shards {
		for _, m := range s.index.Markets() {
			markets[m] = true
		}
	}
	return markets
}

// everything returns all markets in which anything waits.
func (b *book) everything() map[chain.Address]bool {
	markets := b.indexed()
	for _, s := range b.shards {
		for m := range s.markets {
			markets[m] = true
		}
	}
	return markets
}
