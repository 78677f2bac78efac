package statevm

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// A block that came in several batches is one step, whoever wrote between them; what a scanner left behind without its
// end is void once the next one begins.
func TestBlocksInParts(t *testing.T) {
	ref := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}}
	at := func(epoch uint64, m wire.Message) bus.Record { return encodeRecord(t, chain.Hash{}, m, epoch) }
	log := func(epoch uint64, index uint32) bus.Record {
		return at(epoch, wire.Log{Log: chain.Log{Block: ref.Number, BlockHash: ref.Hash, Index: index}})
	}
	part := func(epoch uint64, records uint32) bus.Record {
		return at(epoch, wire.Part{Block: ref, Records: records})
	}
	all := []bus.Record{log(2, 0), log(2, 1), log(2, 2)}
	end := func(epoch uint64) bus.Record {
		return at(epoch, wire.BlockEnd{Block: ref, Records: 3, Digest: wire.Digest(all)})
	}
	for name, c := range map[string]struct {
		records []bus.Record
		steps   int
		says    string // of the halt, if there is one
	}{
		"in one batch":      {[]bus.Record{all[0], all[1], all[2], end(2)}, 1, ""},
		"in two":            {[]bus.Record{all[0], part(2, 1), all[1], all[2], end(2)}, 1, ""},
		"in three":          {[]bus.Record{all[0], part(2, 1), all[1], part(2, 2), all[2], end(2)}, 1, ""},
		"the end by itself": {[]bus.Record{all[0], all[1], all[2], part(2, 3), end(2)}, 1, ""},
		"a block that nobody claimed between": {
			[]bus.Record{all[0], part(2, 1), log(3, 0), end(3), all[1], all[2], end(2)}, 1, "",
		},
		"a stale block between": {[]bus.Record{all[0], part(2, 1), log(1, 0), end(1), all[1], all[2], end(2)}, 1, ""},
		"abandoned": {[]bus.Record{
			log(1, 0), part(1, 1), at(2, wire.Epoch{Number: 2, Owner: "next"}), all[0], all[1], all[2], end(2),
		}, 2, ""},
		"abandoned, and finished too late": {[]bus.Record{
			log(1, 0), part(1, 1), at(2, wire.Epoch{Number: 2, Owner: "next"}), log(1, 1), log(1, 2), end(1), all[0],
			all[1], all[2], end(2),
		}, 5, ""},
		"a part is missing": {[]bus.Record{all[0], part(2, 1), all[2], end(2)}, 0,
			"ends after 3 records and has 2"},
		"a part counts wrong":  {[]bus.Record{all[0], part(2, 2)}, 0, "ends after 2 records and has 1"},
		"a part of nothing":    {[]bus.Record{part(2, 0)}, 0, "ends after 0 records"},
		"two ends of one part": {[]bus.Record{all[0], part(2, 1), part(2, 1)}, 0, "ends after 1 records"},
		"a torn batch, then an EPOCH": {[]bus.Record{all[0], at(3, wire.Epoch{Number: 3})}, 0,
			"stands inside a block"},
		"a torn batch, then old":                     {[]bus.Record{all[0], log(1, 0)}, 0, "stands inside a block"},
		"a torn batch, then one that nobody claimed": {[]bus.Record{all[0], log(3, 0)}, 0, "stands inside a block"},
		"a part, then a REORG": {[]bus.Record{all[0], part(2, 1), at(2, wire.Reorg{})}, 0,
			"stands inside a block"},
	} {
		t.Run(name, func(t *testing.T) {
			_, first, err := wire.Decode(c.records[0])
			if err != nil {
				t.Fatal(err)
			}
			a := assembler{claim: wire.Claim(first.Epoch)}
			steps, shares := 0, 0
			for offset, r := range c.records {
				r.Offset = int64(offset)
				s, complete, err := a.take(r)
				if err != nil {
					if c.says == "" || !strings.Contains(err.Error(), c.says) {
						t.Fatal(err)
					}
					return
				}
				if !complete {
					continue
				}
				steps++
				if len(a.records) > 0 || s.next != int64(offset)+1 {
					t.Errorf("a step to offset %d, with %d records open", s.next, len(a.records))
				}
				if s.part != nil {
					shares++
					if len(s.part.messages) != 3 {
						t.Errorf("the block has %d records", len(s.part.messages))
					}
				}
			}
			if c.says != "" || steps != c.steps || shares != 1 {
				t.Errorf("%d steps, %d blocks", steps, shares)
			}
		})
	}
}
