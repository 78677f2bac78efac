package scanner

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// tooLargeError reports that one record alone is larger than a batch may be. Nothing of its block is published, and
// waiting does not help.
type tooLargeError struct {
	block       uint64
	bytes, most int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("block %d, or history before it, holds a record of %d bytes, and a batch may have %d: nothing "+
		"is published until kafka.max_bytes and the topics' max.message.bytes are at least %d (keeperctl prepare names "+
		"the command for the topics; then restart every process with the new kafka.max_bytes)", e.block, e.bytes,
		e.most, e.bytes)
}

// split cuts the records of a block, or of a range, into batches of at most so many bytes: all but the last are closed
// by a PART, the last by what closed the whole.
func split(records []wire.Record, of chain.BlockRef, most int, encode encoder) ([][]wire.Record, error) {
	if size(records) <= most {
		return [][]wire.Record{records}, nil
	}
	closing, err := encode(chain.Hash{}, wire.Part{Block: of})
	if err != nil {
		return nil, err
	}
	const count = 8 // what the number in a PART takes at most
	least, room := 0, most-sizeOf(closing)-count
	for _, r := range records {
		least = max(least, frame+sizeOf(r)+most-room)
	}
	if least > most {
		return nil, &tooLargeError{of.Number, least, most}
	}
	var parts [][]wire.Record
	from, filled := 0, frame
	for i, r := range records {
		if filled+sizeOf(r) > room {
			end, err := encode(chain.Hash{}, wire.Part{Block: of, Records: uint32(i)})
			if err != nil {
				return nil, err
			}
			parts = append(parts, append(records[from:i:i], end))
			from, filled = i, frame
		}
		filled += sizeOf(r)
	}
	return append(parts, records[from:]), nil
}

// splitAll splits what each partition gets of a block or range.
func splitAll(batches [][]wire.Record, of chain.BlockRef, most int, encode encoder) ([][][]wire.Record, error) {
	all := make([][][]wire.Record, len(batches))
	for p, records := range batches {
		var err error
		if all[p], err = split(records, of, most, encode); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// frame bounds the bytes of a batch, and of a record, beside keys, values and headers.
const frame = 64

// size bounds the bytes of a batch from above.
func size(records []wire.Record) int {
	total := frame
	for _, r := range records {
		total += sizeOf(r)
	}
	return total
}

// sizeOf bounds the bytes of a record from above.
func sizeOf(r wire.Record) int {
	total := frame + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		total += frame/4 + len(h.Key) + len(h.Value)
	}
	return total
}
