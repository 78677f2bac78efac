package bus

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func drawBytes(t *rapid.T, name string) []byte {
	if rapid.Bool().Draw(t, name+" is nil") {
		return nil
	}
	if rapid.Bool().Draw(t, name+" repeats") {
		return bytes.Repeat([]byte{rapid.Byte().Draw(t, name)}, rapid.IntRange(0, 5000).Draw(t, name+" length"))
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name)
}

func drawRecord(t *rapid.T) Record {
	r := Record{Key: drawBytes(t, "key"), Value: drawBytes(t, "value")}
	for range rapid.IntRange(0, 4).Draw(t, "headers") {
		r.Headers = append(r.Headers,
			Header{Key: rapid.String().Draw(t, "header"), Value: drawBytes(t, "header value")})
	}
	return r
}

func drawRecords(t *rapid.T) []Record {
	return rapid.SliceOfN(rapid.Custom(drawRecord), 1, 20).Draw(t, "records")
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// What is encoded is what this library's own decoder, and the reader on top of it, find in it.
func TestBatchReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		now := time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "now"))
		raw, _ := encodeBatch(records, session{id: 7, epoch: 1}, 3, now)
		var set protocol.RecordSet
		if n, err := set.ReadFrom(bytes.NewReader(raw)); err != nil || n != int64(len(raw)) {
			t.Fatalf("%d of %d bytes read: %v", n, len(raw), err)
		}
		got, err := new(Reader).decode(set.Records)
		if err != nil || len(got) != len(records) {
			t.Fatalf("%d records of %d, %v", len(got), len(records), err)
		}
		for i, want := range records {
			if !same(got[i].Key, want.Key) || !same(got[i].Value, want.Value) ||
				len(got[i].Headers) != len(want.Headers) ||
				got[i].Offset != int64(i) || !got[i].Time.Equal(now) {
				t.Fatalf("record %d: got %v, want %v", i, got[i], want)
			}
			for j, h := range want.Headers {
				if got[i].Headers[j].Key != h.Key || !same(got[i].Headers[j].Value, h.Value) {
					t.Fatalf("record %d, header %d: got %v, want %v", i, j, got[i].Headers[j], h)
				}
			}
		}
	})
}

// An unrelated decoder finds the fields that brokers judge by, and the checksum holds.
func TestBatchFieldsForBrokers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		s := session{id: rapid.Int64Min(0).Draw(t, "id"), epoch: rapid.Int16Min(0).Draw(t, "epoch")}
		sequence := rapid.Int32Min(0).Draw(t, "sequence")
		raw, unpacked := encodeBatch(records, s, sequence, time.UnixMilli(1_700_000_000_000))
		size, raw := int(raw[0])<<24|int(raw[1])<<16|int(raw[2])<<8|int(raw[3]), raw[4:]
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw); err != nil {
			t.Fatal(err)
		}
		if size != len(raw) || int(b.Length) != len(raw)-12 || b.Magic != 2 || b.FirstOffset != 0 ||
			b.ProducerID != s.id || b.ProducerEpoch != s.epoch || b.FirstSequence != sequence ||
			int(b.NumRecords) != len(records) || int(b.LastOffsetDelta) != len(records)-1 ||
			b.FirstTimestamp != 1_700_000_000_000 || b.MaxTimestamp != b.FirstTimestamp {
			t.Fatalf("size %d of %d: %+v", size, len(raw), b)
		}
		if crc := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)); int32(crc) != b.CRC {
			t.Fatalf("checksum %x, want %x", b.CRC, crc)
		}
		rest := b.Records
		switch b.Attributes {
		case 0:
		case 4:
			packed := len(rest)
			if rest = unzip(t, rest); packed >= len(rest) {
				t.Fatalf("%d bytes were compressed to %d", len(rest), packed)
			}
		default:
			t.Fatalf("attributes %x", b.Attributes)
		}
		if 61+len(rest) != unpacked {
			t.Fatalf("%d bytes before compression, %d said", 61+len(rest), unpacked)
		}
		for i, want := range records {
			var r kmsg.Record
			if err := r.ReadFrom(rest); err != nil || int(r.OffsetDelta) != i || !same(r.Key, want.Key) ||
				!same(r.Value, want.Value) {
				t.Fatalf("record %d: %+v, %v", i, r, err)
			}
			rest = rest[len(r.AppendTo(nil)):]
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes too many", len(rest))
		}
		if again, _ := encodeBatch(records, s, sequence, time.UnixMilli(1_700_000_000_000)); !bytes.Equal(again[4:],
			raw) {
			t.Fatal("equal arguments give different bytes")
		}
	})
}

// Brokers count sequences from the largest int32 on to 0.
func TestAdvance(t *testing.T) {
	for _, c := range []struct {
		from int32
		n    int
		want int32
	}{
		{0, 0, 0}, {0, 1, 1}, {41, 7, 48}, {math.MaxInt32 - 1, 1, math.MaxInt32}, {math.MaxInt32, 1, 0},
		{math.MaxInt32 - 1, 5, 3},
	} {
		if got := advance(c.from, c.n); got != c.want {
			t.Errorf("%d after %d records: %d, want %d", c.from, c.n, got, c.want)
		}
	}
}

// A producer that has counted all sequences goes on.
func TestSequenceWraps(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") == "" {
		t.Skip("needs Apache Kafka (KAFKA_BROKERS): the embedded broker takes the largest sequence number for 0")
	}
	c := connect(t, addresses(t))
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "0") // an empty partition takes no unknown producer but from sequence 0
	p := c.Producer(topic)
	if _, err := p.open(guarded(t), 0); err != nil {
		t.Fatal(err)
	}
	p.lane(0).sequence = math.MaxInt32 - 2
	produce(t, p, "1", "2")
	produce(t, p, "3", "4", "5")
	produce(t, p, "6")
	wantLog(t, c, topic, "0", "1", "2", "3", "4", "5", "6")
}

// stretch is a batch whose records have consecutive offsets.
type stretch struct {
	first int64
	n     int
}

func (s stretch) batch() protocol.RecordReader {
	records := make([]protocol.Record, s.n)
	for i := range records {
		records[i].Offset = s.first + int64(i)
	}
	return &protocol.RecordBatch{Records: protocol.NewRecordReader(records...)}
}

// Whatever batches a broker answers with, what is delivered joins on without a hole, and what does not is an error and
// not skipped.
func TestDecodeNeverSkips(t *testing.T) {
	c := &Client{metrics: NewMetrics(prometheus.NewRegistry())}
	rapid.Check(t, func(t *rapid.T) {
		var stream protocol.RecordStream
		present := map[int64]bool{}
		at := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			s := stretch{first: at + rapid.SampledFrom([]int64{0, 0, 0, 1, 5}).Draw(t, "hole"), n: rapid.IntRange(1, 6).
				Draw(t, "records")}
			at = s.first + int64(s.n)
			for o := s.first; o < at; o++ {
				present[o] = true
			}
			stream.Records = append(stream.Records, s.batch())
		}
		r := &Reader{c: c, next: rapid.Int64Range(0, at+2).Draw(t, "next")}
		records, err := r.decode(&stream)
		for i, record := range records {
			if record.Offset != r.next+int64(i) {
				t.Fatalf("delivery %d from %d has offset %d", i, r.next, record.Offset)
			}
		}
		var from, last int64
		if errors.Is(err, ErrGap) {
			if _, err := fmt.Sscanf(err.Error(), "/0: offsets %d to %d are", &from, &last); err != nil {
				t.Fatal(err)
			}
		}
		switch beyond := r.next + int64(len(records)); {
		case present[beyond]:
			t.Fatalf("offset %d is there and was not delivered: %v", beyond, err)
		case len(records) > 0 && err != nil:
			t.Fatalf("records and an error: %v", err)
		case len(records) == 0 && r.next < at && (from != r.next || !present[last+1]):
			t.Fatalf("a hole at %d: %v", r.next, err)
		case len(records) == 0 && r.next >= at && !errors.Is(err, ErrForeignBatch):
			t.Fatalf("batches that end before %d: %v", r.next, err)
		}
	})
}

func TestDecodeStopsAtStrangers(t *testing.T) {
	for name, stranger := range map[string]protocol.RecordReader{
		"control batch":    &protocol.ControlBatch{},
		"transaction":      &protocol.RecordBatch{Attributes: protocol.Transactional},
		"old format":       &protocol.MessageSet{},
		"unreadable":       &protocol.RecordBatch{Records: broken{}},
		"no record inside": &protocol.RecordBatch{Records: protocol.NewRecordReader()},
	} {
		t.Run(name, func(t *testing.T) {
			if records, err := new(Reader).
				decode(&protocol.RecordStream{Records: []protocol.RecordReader{stranger}}); err == nil {
				t.Fatalf("delivered %v", records)
			}
		})
	}
	native := stretch{first: 0, n: 2}.batch()
	records, err := new(Reader).
		decode(&protocol.RecordStream{Records: []protocol.RecordReader{native, &protocol.ControlBatch{}}})
	if err != nil || len(records) != 2 {
		t.Fatalf("what comes before a stranger: %v, %v", records, err)
	}
}

type broken struct{}

func (broken) ReadRecord() (*protocol.Record, error) { return nil, io.ErrUnexpectedEOF }
