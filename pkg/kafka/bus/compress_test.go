package bus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
	kafkacompress "github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// fataler is a test or a run of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// unzip is zstd's own reading of a frame.
func unzip(t fataler, frame []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all, err := d.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bomb is a batch, with the size before it, that is small and unpacks to so many bytes.
func bomb(t *testing.T, unpacked int) []byte {
	t.Helper()
	set, _ := encodeBatch(valued("one"), session{id: -1, epoch: -1}, -1, time.Now())
	packed := compressor().EncodeAll(make([]byte, unpacked), nil)
	batch := slices.Concat(set[sizePrefix:][:batchRecords], packed)
	binary.BigEndian.PutUint16(batch[batchAttributes:], zstdBatch)
	binary.BigEndian.PutUint32(batch[batchLengthAt:], uint32(len(batch)-batchLengthFrom))
	binary.BigEndian.PutUint32(batch[batchCRCAt:], crc32.Checksum(batch[batchCRCFrom:], castagnoli))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(batch))), batch...)
}

// A batch that unpacks to more than any of ours stops its reader, behind what comes before it, and is not waited out.
func TestReaderRefusesWhatUnpacksToTooMuch(t *testing.T) {
	b := embedded(t, broker.Config{})
	c := connect(t, b.Addrs())
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "before")
	set := bomb(t, maxUnpacked+1)
	answer, err := c.kafka.RawProduce(guarded(t), &kafka.RawProduceRequest{Topic: topic, RequiredAcks: kafka.RequireAll,
		RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(set)}})
	if err != nil || answer.Error != nil {
		t.Fatal(err, answer)
	}
	r := c.Reader(topic, 0, 0)
	if before, err := r.Next(guarded(t)); err != nil || string(before.Value) != "before" {
		t.Fatalf("before it stands %s, %v", before.Value, err)
	}
	_, err = r.Next(guarded(t))
	if !errors.Is(err, ErrForeignBatch) || !strings.Contains(err.Error(), "at offset 1:") ||
		!strings.Contains(err.Error(), "unpacks to more") {
		t.Fatalf("%d bytes that unpack to %d: %v", len(set), maxUnpacked+1, err)
	}
}

// No codec gives out more than the bound, and a frame that claims to need more memory is refused.
func TestUnpackingIsBounded(t *testing.T) {
	boundCodecs()
	for i, codec := range kafkacompress.Codecs {
		if codec == nil {
			continue
		}
		t.Run(codec.Name(), func(t *testing.T) {
			for _, extra := range []int{0, 1} {
				var packed bytes.Buffer
				w := codec.NewWriter(&packed)
				if _, err := w.Write(make([]byte, maxUnpacked+extra)); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				r := kafkacompress.Compression(i).Codec().NewReader(&packed)
				n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
				if errors.Is(err, errUnpacked) != (extra > 0) || n > maxUnpacked {
					t.Fatalf("%d of %d bytes: %v", n, maxUnpacked+extra, err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	greedy, err := zstd.NewWriter(nil, zstd.WithWindowSize(2*maxUnpacked))
	if err != nil {
		t.Fatal(err)
	}
	var frame bytes.Buffer
	greedy.Reset(&frame)
	for range 2 { // a stream, whose frame names no size
		if _, err := greedy.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := greedy.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := greedy.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, kafkacompress.Zstd.Codec().NewReader(&frame)); err == nil {
		t.Fatalf("%d bytes of a frame that claims a window of %d", n, 2*maxUnpacked)
	}
}

// recordedLogs are the logs of a recording of the original contracts, as records of the log topic, by block.
func recordedLogs(t testing.TB, name string) (blocks [][]Record) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "fixtures", "gmx", name+".jsonl.gz"))
	if err != nil {
		t.Skipf("no recording: %v", err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 64<<20)
	for last := uint64(0); lines.Scan(); {
		var l struct {
			BlockNumber       uint64
			BlockHash, TxHash chain.Hash
			TxIndex, LogIndex uint32
			Address           chain.Address
			Topics            []chain.Hash
			Data              perp.Bytes
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		key := chain.Hash{}
		if len(l.Topics) > 2 {
			key = l.Topics[2]
		}
		record, err := wire.Encode(key[:], wire.Log{Log: chain.Log{Address: l.Address, Topics: l.Topics, Data: l.Data,
			Block: l.BlockNumber, BlockHash: l.BlockHash, TxHash: l.TxHash, TxIndex: l.TxIndex,
			Index: l.LogIndex}}, 17, 1)
		if err != nil {
			t.Fatal(err)
		}
		if l.BlockNumber != last {
			blocks, last = append(blocks, nil), l.BlockNumber
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], record)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return blocks
}

var recordings = []string{"trading-and-liquidation", "risk-parity", "toggles", "swaps"}

// lots are the records of blocks, so many blocks at once.
func lots(blocks [][]Record, at int) (all [][]Record) {
	for len(blocks) > 0 {
		n := min(at, len(blocks))
		var lot []Record
		for _, b := range blocks[:n] {
			lot = append(lot, b...)
		}
		all, blocks = append(all, lot), blocks[n:]
	}
	return all
}

// What logs take of the topic, in batches of a block, as at the head, and of forty, as history is written.
func TestLogsTakeAFractionOfTheirBytes(t *testing.T) {
	for _, name := range recordings {
		blocks := recordedLogs(t, name)
		for at, least := range map[int]float64{1: 3, 40: 6} {
			logs, before, after := 0, 0, 0
			for _, lot := range lots(blocks, at) {
				set, unpacked := encodeBatch(lot, session{}, 0, time.Now())
				logs, before, after = logs+len(lot), before+unpacked, after+len(set)-sizePrefix
			}
			factor := float64(before) / float64(after)
			t.Logf("%s, %d blocks a batch: %d logs, %d bytes a log before and %d after, %.1f times smaller", name, at,
				logs, before/logs, after/logs, factor)
			if factor < least {
				t.Errorf("%s, %d blocks a batch: %.1f times smaller, want %.1f", name, at, factor, least)
			}
		}
	}
}

// An empty block in four partitions: each gets one batch, which says that it is empty and what is final. 61 bytes are
// Kafka's own in each, and 64 are hashes.
func TestEmptyBlockTakesFewBytes(t *testing.T) {
	end := wire.BlockEnd{Block: chain.BlockRef{Number: 80_000_000, Hash: chain.Keccak256([]byte{1}),
		Parent: chain.Keccak256([]byte{2}), TimeMs: 1_790_000_000_450}, Digest: wire.Digest(nil),
		FinalDepth: 2}
	record, err := wire.Encode(make([]byte, len(chain.Hash{})), end, 17, 1)
	if err != nil {
		t.Fatal(err)
	}
	set, unpacked := encodeBatch([]Record{record}, session{id: 1}, 0, time.Now())
	const partitions, most = 4, 650
	bytes := partitions * (len(set) - sizePrefix)
	t.Logf("%d bytes over %d partitions, %.0f MB a day of BNB Smart Chain", bytes, partitions,
		float64(bytes)*86400/0.45/1e6)
	if bytes > most || unpacked != len(set)-sizePrefix {
		t.Errorf("an empty block takes %d bytes, want at most %d", bytes, most)
	}
}
