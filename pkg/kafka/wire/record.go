package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
)

// SchemaVersion is the version of the schema this build writes and the highest it reads.
const SchemaVersion = 1

// Record is one record of a topic, as the client of pkg/kafka/bus delivers it and as the codec reads it.
type Record struct {
	// Key and Value may be nil, which is kept apart from empty.
	Key, Value []byte
	Headers    []Header

	// Time, Partition and Offset are set on what was read and ignored when producing. Time is when the batch was handed
	// to the producer, by that process's clock, in whole milliseconds; what a record is about belongs into its value.
	// (Brokers forget producers, and drop old segments, by record time: a batch stamped with a time long past could
	// lose both its protection from duplicates and itself.)
	Time      time.Time
	Partition int
	Offset    int64
}

// Header is one entry of a record's ordered list of headers; keys may repeat.
type Header struct {
	Key   string
	Value []byte
}

// Kind is the header t: what the value holds.
type Kind string

// The kinds of records.
const (
	KindEpoch     Kind = "EPOCH"
	KindLog       Kind = "LOG"
	KindTx        Kind = "TX"
	KindParam     Kind = "PARAM"
	KindAudit     Kind = "AUDIT"
	KindBlockEnd  Kind = "BLOCK_END"
	KindReorg     Kind = "REORG"
	KindFinalized Kind = "FINALIZED"
	KindRangeEnd  Kind = "RANGE_END"
	KindHalt      Kind = "HALT"
	KindPart      Kind = "PART"
	KindPrice     Kind = "PRICE"
	KindJob       Kind = "JOB"
	KindResult    Kind = "RESULT"
)

// Meta is the content of a record's headers.
type Meta struct {
	Kind    Kind
	Version uint16
	// Epoch is the writer's epoch: readers drop records of another one than that in force in the partition ([Claim]).
	Epoch uint64
	// Filter counts the changes of the scanner's address and topic filter.
	Filter uint32
}

// ErrUnknown is returned for a record this build cannot understand: an unknown kind, or a schema version above
// [SchemaVersion]. The reader must stop and say so.
var ErrUnknown = errors.New("unknown record")

// Message is one of the types of this package that a record can hold.
type Message interface {
	kind() Kind
	marshal() proto.Message
}

// headerBrief is the one header of a BLOCK_END of a block without records in its partition: schema version, epoch and
// filter, each as an unsigned varint. Most blocks are of that kind in most partitions, and the record is as short as it
// can be: it has no key.
const headerBrief = "e"

// Encode returns the record of a message. Key is the routing or identity key of the topic; see docs/topics.md.
func Encode(key []byte, m Message, epoch uint64, filter uint32) (Record, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.marshal())
	if err != nil {
		return Record{}, fmt.Errorf("encoding %s: %w", m.kind(), err)
	}
	if end, is := m.(BlockEnd); is && end.brief() {
		return Record{Value: value, Headers: []Header{{headerBrief, briefMeta(epoch, filter)}}}, nil
	}
	return Record{Key: key, Value: value, Headers: []Header{
		{"t", []byte(m.kind())},
		{"sv", binary.BigEndian.AppendUint16(nil, SchemaVersion)},
		{"ep", binary.BigEndian.AppendUint64(nil, epoch)},
		{"fv", binary.BigEndian.AppendUint32(nil, filter)},
	}}, nil
}

// Decode reads a record. The error wraps [ErrUnknown] where the kind or version is none this build knows.
func Decode(r Record) (Message, Meta, error) {
	meta, err := readMeta(r.Headers)
	if err != nil {
		return nil, meta, at(r, err)
	}
	unmarshal, known := decoders[meta.Kind]
	if !known {
		return nil, meta, at(r, fmt.Errorf("kind %q: %w", meta.Kind, ErrUnknown))
	}
	if meta.Version > SchemaVersion {
		return nil, meta, at(r, fmt.Errorf("%s of schema version %d, this build reads up to %d: %w", meta.Kind,
			meta.Version, SchemaVersion, ErrUnknown))
	}
	m, err := unmarshal(r.Value)
	if err != nil {
		return nil, meta, at(r, fmt.Errorf("decoding %s: %w", meta.Kind, err))
	}
	return m, meta, nil
}

func at(r Record, err error) error {
	return fmt.Errorf("record at partition %d, offset %d: %w", r.Partition, r.Offset, err)
}

func briefMeta(epoch uint64, filter uint32) []byte {
	b := binary.AppendUvarint(nil, SchemaVersion)
	b = binary.AppendUvarint(b, epoch)
	return binary.AppendUvarint(b, uint64(filter))
}

// readBriefMeta reads a header that briefMeta has made. A number that is too large for its field, or a byte too many,
// is of a writer that this build does not know.
func readBriefMeta(b []byte) (Meta, error) {
	var n [3]uint64
	for i := range n {
		value, size := binary.Uvarint(b)
		if size <= 0 {
			return Meta{}, fmt.Errorf("header %s ends early: %w", headerBrief, ErrUnknown)
		}
		n[i], b = value, b[size:]
	}
	if len(b) > 0 || n[0] == 0 || n[0] > math.MaxUint16 || n[2] > math.MaxUint32 {
		return Meta{}, fmt.Errorf("header %s says %v and %d bytes more: %w", headerBrief, n, len(b), ErrUnknown)
	}
	return Meta{Kind: KindBlockEnd, Version: uint16(n[0]), Epoch: n[1], Filter: uint32(n[2])}, nil
}

func readMeta(headers []Header) (meta Meta, err error) {
	if len(headers) > 0 && headers[0].Key == headerBrief {
		return readBriefMeta(headers[0].Value)
	}
	for _, h := range headers {
		switch {
		case h.Key == "t":
			meta.Kind = Kind(h.Value)
		case h.Key == "sv" && len(h.Value) == 2:
			meta.Version = binary.BigEndian.Uint16(h.Value)
		case h.Key == "ep" && len(h.Value) == 8:
			meta.Epoch = binary.BigEndian.Uint64(h.Value)
		case h.Key == "fv" && len(h.Value) == 4:
			meta.Filter = binary.BigEndian.Uint32(h.Value)
		case h.Key == "sv" || h.Key == "ep" || h.Key == "fv":
			return meta, fmt.Errorf("header %s has %d bytes: %w", h.Key, len(h.Value), ErrUnknown)
		}
	}
	if meta.Kind == "" || meta.Version == 0 {
		return meta, fmt.Errorf("headers t and sv are missing: %w", ErrUnknown)
	}
	return meta, nil
}
