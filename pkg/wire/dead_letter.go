package wire

import (
	"slices"
	"strconv"
)

// DeadLetter is a record of a topic as it goes to the dead letter topic: untouched, with where it came from and why in
// further headers.
func DeadLetter(topic string, r Record, why string) Record {
	return Record{Key: []byte(topic), Value: r.Value, Headers: append(slices.Clone(r.Headers),
		Header{Key: "source.partition", Value: []byte(strconv.Itoa(r.Partition))},
		Header{Key: "source.offset", Value: []byte(strconv.FormatInt(r.Offset, 10))},
		Header{Key: "source.key", Value: r.Key},
		Header{Key: "error", Value: []byte(why)},
	)}
}
