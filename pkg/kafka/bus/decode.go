package bus

import (
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// decode turns the batches of a fetch into records, from the next offset on. Brokers answer with whole batches, so what
// comes before the offset is passed over. It stops before a hole, so that the records in front of it are delivered; the
// next fetch begins with the hole.
func (r *Reader) decode(batches kafka.RecordReader) ([]Record, error) {
	stream, ok := batches.(*protocol.RecordStream)
	if !ok {
		return nil, nil // an empty answer
	}
	var records []Record
	for _, batch := range stream.Records {
		if err := r.native(batch); err != nil {
			if len(records) > 0 {
				return records, nil // these first; the next fetch begins with the stranger
			}
			return nil, err
		}
		var whole bool
		var err error
		if records, whole, err = r.appendRecords(records, batch); err != nil || !whole {
			return records, err
		}
	}
	if len(records) == 0 && len(stream.Records) > 0 {
		return nil, r.foreign("the batch at this offset does not hold it")
	}
	return records, nil
}

// native refuses what this package never writes.
func (r *Reader) native(batch protocol.RecordReader) error {
	b, ok := batch.(*protocol.RecordBatch)
	switch {
	case !ok:
		return r.foreign(fmt.Sprintf("a %T, as transactions or writers of old formats leave it", batch))
	case b.Attributes.Transactional():
		return r.foreign("a batch of a transaction, which may have been aborted")
	default:
		return nil
	}
}

// appendRecords appends a batch's records and reports whether they join on without a hole.
func (r *Reader) appendRecords(records []Record, batch protocol.RecordReader) (_ []Record, whole bool, err error) {
	for {
		raw, err := batch.ReadRecord()
		if errors.Is(err, io.EOF) {
			return records, true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("decoding a batch: %w", err)
		}
		switch want := r.next + int64(len(records)); {
		case raw.Offset < want:
			continue
		case raw.Offset > want && len(records) == 0:
			return nil, false, r.gap(raw.Offset)
		case raw.Offset > want:
			return records, false, nil
		}
		record, err := r.record(raw)
		if err != nil {
			return nil, false, fmt.Errorf("decoding offset %d: %w", raw.Offset, err)
		}
		records = append(records, record)
	}
}

// record copies a record out of the library's buffers, which are used again once closed.
func (r *Reader) record(raw *protocol.Record) (Record, error) {
	key, err := copyBytes(raw.Key)
	if err != nil {
		return Record{}, err
	}
	value, err := copyBytes(raw.Value)
	if err != nil {
		return Record{}, err
	}
	var headers []Header
	for _, h := range raw.Headers {
		headers = append(headers, Header{Key: h.Key, Value: h.Value})
	}
	return Record{Key: key, Value: value, Headers: headers, Time: raw.Time, Partition: r.partition, Offset: raw.Offset},
		nil
}

func copyBytes(b protocol.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	p, err := protocol.ReadAll(b)
	return p, errors.Join(err, b.Close())
}

func (r *Reader) foreign(reason string) error {
	return fmt.Errorf("%s/%d: %w at offset %d: %s", r.topic, r.partition, ErrForeignBatch, r.next, reason)
}
