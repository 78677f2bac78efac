// Package replay repeats decisions of the planner from the topics alone (PIPE-9): the log topic shows how the state was
// at a block, the price topic which reports there were, and the job topic what the planner published then. The rules
// are those of the planner itself (pkg/risk/due), and the moment is put together by the same code.
//
// Guaranteed: no database is asked, so that what a keeper decided can be told apart from what its tables hold today.
// Not guaranteed: which report of a foreign token the planner had seen last. It is not part of the evidence, and moves
// the second of a decision; every reading that the evidence allows is tried.
package replay

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// Past is the log topic as it stands, partition by partition, with what was taken back left out.
type Past struct{ parts []*partition }

// partition is the blocks of one partition that have records, in order.
type partition struct {
	claim   wire.Claim
	pending []wire.Message // of the block that has not ended yet
	blocks  []block
	tip     uint64
}

// block is one block's share of a partition.
type block struct {
	ref      chain.BlockRef
	messages []wire.Message
}

// Read reads the log topic up to its present end, and keeps the blocks up to a number.
func Read(ctx context.Context, client *bus.Client, keeper wire.Config, until uint64) (*Past, error) {
	topic, past := wire.LogTopic(keeper.ChainID), &Past{}
	for n := range keeper.LogPartitions {
		p := &partition{}
		past.parts = append(past.parts, p)
		for r, err := range client.Scan(ctx, topic, n, 0) {
			if err != nil {
				return nil, fmt.Errorf("reading %s/%d: %w", topic, n, err)
			}
			var key chain.Hash
			if copy(key[:], r.Key); !key.IsZero() && wire.Partition(key, keeper.LogPartitions) != n {
				continue // a log that its scanner did not understand is in every partition, under its own key
			}
			if err := p.take(r, until); err != nil {
				return nil, fmt.Errorf("%s/%d at offset %d: %w", topic, n, r.Offset, err)
			}
		}
	}
	return past, nil
}

// take adds a record, as statevm does: what was not written under the claim in force is passed over, and what is taken
// back is dropped.
func (p *partition) take(r bus.Record, until uint64) error {
	m, meta, err := wire.Decode(r)
	if err != nil {
		return err
	}
	if !p.claim.Counts(m, meta) {
		return nil
	}
	switch m := m.(type) {
	case wire.Log, wire.Tx, wire.Param, wire.Audit:
		p.pending = append(p.pending, m)
	case wire.BlockEnd:
		p.end(m.Block, until)
	case wire.RangeEnd:
		for _, ref := range m.Blocks {
			p.add(ref, of(p.pending, ref), until)
		}
		p.pending, p.tip = nil, m.Last.Number
	case wire.Reorg:
		p.back(m.Ancestor.Number)
	case wire.Epoch: // parts of a block whose writer ended before the last follow whole
		p.pending = nil
	}
	return nil
}

func (p *partition) end(ref chain.BlockRef, until uint64) {
	if ref.Number > p.tip { // or it is said again by a scanner that has started anew
		p.add(ref, p.pending, until)
		p.tip = ref.Number
	}
	p.pending = nil
}

func (p *partition) add(ref chain.BlockRef, messages []wire.Message, until uint64) {
	if ref.Number <= until {
		p.blocks = append(p.blocks, block{ref, messages})
	}
}

func (p *partition) back(ancestor uint64) {
	for n := len(p.blocks); n > 0 && p.blocks[n-1].ref.Number > ancestor; n-- {
		p.blocks = p.blocks[:n-1]
	}
	p.tip, p.pending = min(p.tip, ancestor), nil
}

// of are the messages of one block of a range.
func of(messages []wire.Message, ref chain.BlockRef) (own []wire.Message) {
	for _, m := range messages {
		var number uint64
		switch m := m.(type) {
		case wire.Log:
			number = m.Block
		case wire.Tx:
			number = m.Block
		case wire.Param:
			number = m.Block.Number
		case wire.Audit:
			number = m.Block.Number
		}
		if number == ref.Number {
			own = append(own, m)
		}
	}
	return own
}

// state is the rows at a block: each partition folds by itself, as in statevm.
type state struct {
	decoder execution.Decoder
	past    *Past
	books   []*perp.Book
	next    []int // block of each partition that is folded next
	// seen are the rows that decisions have looked at, where somebody keeps them; else nil
	seen map[perp.RowKey]perp.Row
}

func (p *Past) state(d execution.Decoder) *state {
	s := &state{decoder: d, past: p, next: make([]int, len(p.parts))}
	for range p.parts {
		s.books = append(s.books, perp.NewBook())
	}
	return s
}

// advance folds up to a block and returns it. It is not known where no partition has a block of that number.
func (s *state) advance(to uint64) (at chain.BlockRef, known bool, err error) {
	for i, p := range s.past.parts {
		for ; s.next[i] < len(p.blocks) && p.blocks[s.next[i]].ref.Number <= to; s.next[i]++ {
			b := p.blocks[s.next[i]]
			if err := s.fold(s.books[i], b); err != nil {
				return at, false, fmt.Errorf("block %d, partition %d: %w", b.ref.Number, i, err)
			}
			if b.ref.Number == to {
				at, known = b.ref, true
			}
		}
	}
	return at, known, nil
}

func (s *state) fold(book *perp.Book, b block) error {
	for from := 0; from < len(b.messages); {
		to, events := from+1, []perp.Event(nil)
		var err error
		switch m := b.messages[from].(type) {
		case wire.Log:
			logs := []chain.Log{m.Log}
			for ; to < len(b.messages); to++ {
				next, is := b.messages[to].(wire.Log)
				if !is || next.TxHash != m.TxHash {
					break
				}
				logs = append(logs, next.Log)
			}
			events, err = s.decoder.Transaction(logs, b.ref.TimeMs)
		case wire.Param:
			events = []perp.Event{m.Event(b.ref.TimeMs)}
		case wire.Audit:
			events = []perp.Event{m.Event(b.ref.TimeMs)}
		}
		for _, e := range events {
			if err == nil {
				err = perp.Apply(book, e)
			}
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// Get implements [perp.Rows] over all partitions.
func (s *state) Get(k perp.RowKey) perp.Row {
	for _, b := range s.books { // of a replicated table every one has all
		if row := b.Get(k); row != nil {
			s.saw(row)
			return row
		}
		if k.Table.Replicated() {
			break
		}
	}
	return nil
}

// saw notes that a decision has looked at a row.
func (s *state) saw(row perp.Row) {
	if s.seen != nil {
		s.seen[row.RowKey()] = row
	}
}

// rows yields all rows of a table that is not replicated.
func rowsOf[R perp.Row](s *state, table perp.Table) func(yield func(R) bool) {
	return func(yield func(R) bool) {
		for _, b := range s.books {
			for _, row := range b.Rows(table) {
				r, is := row.(R)
				if !is {
					continue
				}
				// Moments are put together of these; of all other rows decisions say themselves what they look at.
				if value, of := row.(perp.MarketValue); table == perp.Markets || of && value.Measure == perp.GlvMarket {
					s.saw(row)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}
