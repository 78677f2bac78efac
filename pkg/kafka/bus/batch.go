package bus

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"
)

// session identifies a producer to the brokers.
type session struct {
	id    int64
	epoch int16
}

// The layout of a record batch, format 2. Positions are counted from the batch's first byte, after the size that
// precedes it in a request.
const (
	sizePrefix      = 4
	batchLengthAt   = 8
	batchCRCAt      = 17
	batchAttributes = 21
	batchCRCFrom    = 21 // the checksum covers everything from the attributes on
	batchLengthFrom = 12 // the length counts everything after itself
	batchRecords    = 61 // the records, which alone are compressed
	batchMagic      = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeBatch makes the bytes of a produce request's record set: its size, and one batch that carries the producer's
// identity and the sequence number of its first record, compressed where that makes it smaller. Equal arguments give
// equal bytes, so that a retry is the same batch to the broker. Unpacked is the size of the batch in bytes before
// compression, which its readers have to hold.
func encodeBatch(records []Record, s session, sequence int32, now time.Time) (set []byte, unpacked int) {
	set = plainBatch(records, s, sequence, now)
	batch := set[sizePrefix:]
	unpacked = len(batch)
	if packed, smaller := pack(batch[batchRecords:]); smaller {
		binary.BigEndian.PutUint16(batch[batchAttributes:], zstdBatch)
		set = append(set[:sizePrefix+batchRecords], packed...)
		batch = set[sizePrefix:]
	}
	binary.BigEndian.PutUint32(set, uint32(len(batch)))
	binary.BigEndian.PutUint32(batch[batchLengthAt:], uint32(len(batch)-batchLengthFrom))
	binary.BigEndian.PutUint32(batch[batchCRCAt:], crc32.Checksum(batch[batchCRCFrom:], castagnoli))
	return set, unpacked
}

// plainBatch makes a record set that is not compressed, and of which sizes and checksum are still to be set.
func plainBatch(records []Record, s session, sequence int32, now time.Time) []byte {
	b := make([]byte, sizePrefix, sizePrefix+batchSizeHint(records))
	stamp := now.UnixMilli()
	b = binary.BigEndian.AppendUint64(b, 0)              // base offset: the broker's to set
	b = binary.BigEndian.AppendUint32(b, 0)              // length
	b = binary.BigEndian.AppendUint32(b, math.MaxUint32) // leader epoch: not known (-1)
	b = append(b, batchMagic)                            // format
	b = binary.BigEndian.AppendUint32(b, 0)              // checksum
	// attributes: uncompressed, create time, no transaction
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(records)-1)) // last offset delta
	b = binary.BigEndian.AppendUint64(b, uint64(stamp))          // first time
	b = binary.BigEndian.AppendUint64(b, uint64(stamp))          // last time
	b = binary.BigEndian.AppendUint64(b, uint64(s.id))
	b = binary.BigEndian.AppendUint16(b, uint16(s.epoch))
	b = binary.BigEndian.AppendUint32(b, uint32(sequence))
	b = binary.BigEndian.AppendUint32(b, uint32(len(records)))
	var scratch []byte
	for i, r := range records {
		scratch = appendRecord(scratch[:0], r, i)
		b = binary.AppendVarint(b, int64(len(scratch)))
		b = append(b, scratch...)
	}
	return b
}

// appendRecord appends a record without the length that precedes it. All records of a batch have the batch's time.
func appendRecord(b []byte, r Record, index int) []byte {
	b = append(b, 0)              // attributes: unused by Kafka
	b = binary.AppendVarint(b, 0) // time delta
	b = binary.AppendVarint(b, int64(index))
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for _, h := range r.Headers {
		b = binary.AppendVarint(b, int64(len(h.Key)))
		b = append(b, h.Key...)
		b = appendBytes(b, h.Value)
	}
	return b
}

// appendBytes keeps nil (length -1) apart from empty.
func appendBytes(b, p []byte) []byte {
	if p == nil {
		return binary.AppendVarint(b, -1)
	}
	return append(binary.AppendVarint(b, int64(len(p))), p...)
}

// batchSizeHint is enough for the whole batch in nearly all cases, so that its buffer is allocated once.
func batchSizeHint(records []Record) int {
	const header, perRecord, perHeader = 61, 24, 8
	n := header
	for _, r := range records {
		n += perRecord + len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			n += perHeader + len(h.Key) + len(h.Value)
		}
	}
	return n
}

// advance is the sequence number n records after s: it goes from the largest int32 to 0, as brokers count.
func advance(s int32, n int) int32 { return int32((int64(s) + int64(n)) & math.MaxInt32) }
