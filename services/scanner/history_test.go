package scanner

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// histories draws a range of blocks with something in some of them.
func histories(t *rapid.T) history {
	before := ref(99, 0, chain.BlockRef{})
	h := history{before: chain.BlockRef{Number: before.Number, Hash: before.Hash}}
	for last := before; len(h.refs) < 16; {
		last = ref(last.Number+1, 0, last)
		last.TimeMs = 1000 * last.Number
		h.refs = append(h.refs, last)
		c := content{block: last}
		for i := range rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "logs") {
			account := accountOf(rapid.Byte().Draw(t, "account"))
			l := orderCreated(byte(i))
			l.Block, l.BlockHash, l.Index = last.Number, last.Hash, uint32(i)
			c.logs = append(c.logs, routedLog{l, account.Hash()})
		}
		if rapid.IntRange(0, 9).Draw(t, "parameter") == 0 {
			l := parameterSet(1)
			l.Block, l.BlockHash, l.Index = last.Number, last.Hash, 100
			c.logs = append(c.logs, routedLog{l, chain.Hash{}})
		}
		if len(c.logs) > 0 {
			h.blocks = append(h.blocks, c)
		}
	}
	return h
}

// Cut into pieces of any size, a range says the same: pieces follow each other, none is too large, and together they
// hold the same records.
func TestPieces(t *testing.T) {
	encode := func(key chain.Hash, m wire.Message) (wire.Record, error) {
		return wire.Encode(key[:], m, 1, filterVersion)
	}
	rapid.Check(t, func(t *rapid.T) {
		h, p := histories(t), rapid.SampledFrom([]int{1, 4}).Draw(t, "partitions")
		whole, err := h.batches(p, encode)
		if err != nil {
			t.Fatal(err)
		}
		most := rapid.IntRange(40_000, 150_000).Draw(t, "most")
		pieces, err := h.pieces(p, most, encode)
		if err != nil {
			t.Fatal(err)
		}
		before, together := h.before, make([][]wire.Record, p)
		for _, piece := range pieces {
			if piece.before.Number != before.Number || piece.before.Hash != before.Hash {
				t.Fatalf("a piece behind %+v stands behind %+v", piece.before, before)
			}
			before = piece.last()
			for p, parts := range piece.batches {
				batch := parts[0]
				m, _, err := wire.Decode(batch[len(batch)-1])
				if end, is := m.(wire.RangeEnd); err != nil || !is || len(parts) > 1 || end.Last != piece.last() ||
					int(end.Records) != len(batch)-1 || size(batch) > most {
					t.Fatalf("a batch of %d bytes ends with %+v, %v", size(batch), m, err)
				}
				together[p] = append(together[p], batch[:len(batch)-1]...)
			}
		}
		if before != h.last() {
			t.Fatalf("the last piece ends with %+v", before)
		}
		for p := range whole {
			if !slices.EqualFunc(together[p], whole[p][:len(whole[p])-1],
				func(a, b wire.Record) bool { return bytes.Equal(a.Value, b.Value) }) {
				t.Fatalf("partition %d holds other records", p)
			}
		}
	})
}

// A record that no batch can hold is refused; a block of several is cut.
func TestRecordLargerThanABatch(t *testing.T) {
	encode := func(key chain.Hash, m wire.Message) (wire.Record, error) {
		return wire.Encode(key[:], m, 1, filterVersion)
	}
	block := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	h := history{before: ref(99, 0, chain.BlockRef{}), refs: []chain.BlockRef{block}, blocks: []content{
		{block: block, logs: []routedLog{{chain.Log{Data: make([]byte, 5000), Topics: make([]chain.Hash, 2)},
			chain.Hash{}}}},
	}}
	if _, err := h.pieces(1, 4000, encode); err == nil {
		t.Error("it was not refused")
	}
}
