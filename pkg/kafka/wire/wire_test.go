package wire

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

var update = flag.Bool("update", false, "write the golden files; only after a deliberate, compatible change of the "+
	"schema")

func sampleHash(b byte) (h chain.Hash) {
	for i := range h {
		h[i] = b
	}
	return h
}

func sampleAddress(b byte) chain.Address { return sampleHash(b).Address() }

func samples() map[string]Message {
	block := chain.BlockRef{Number: 77, Hash: sampleHash(1), Parent: sampleHash(2), TimeMs: 1_700_000_000_450}
	tip := chain.BlockRef{Number: 80, Hash: sampleHash(12), Parent: sampleHash(13), TimeMs: 9}
	return map[string]Message{
		"epoch": Epoch{Number: 3, Owner: "5f0c"},
		"log": Log{chain.Log{
			Address: sampleAddress(3), Topics: []chain.Hash{sampleHash(4), sampleHash(5)}, Data: []byte{1, 2, 3},
			Block:     77,
			BlockHash: sampleHash(1), TxHash: sampleHash(6), TxIndex: 2, Index: 9,
		}},
		"tx": Tx{chain.Tx{
			Hash: sampleHash(6), From: sampleAddress(7), To: sampleAddress(8), Nonce: 5, Block: 77,
			BlockHash: sampleHash(1), Index: 2, OK: true,
			GasUsed: 1_296_000, GasPrice: 50_000_000,
		}},
		"param":     Param{Block: block, Key: sampleHash(9), Value: sampleHash(10)},
		"audit":     Audit{Block: block, Market: sampleAddress(18), Read: tip, Words: 61},
		"block_end": BlockEnd{Block: block, Records: 4, Digest: sampleHash(11)},
		"reorg":     Reorg{Reorg: chain.Reorg{Ancestor: block, OldTip: tip}},
		"range_end": RangeEnd{Before: block, Last: tip, Blocks: []chain.BlockRef{block, tip}, Records: 4,
			Digest: sampleHash(11)},
		"halt":      Halt{Block: block, Reason: "final block replaced"},
		"finalized": Finalized{Block: block},
		"part":      Part{Block: block, Records: 4},
		"price": Price{
			Token: sampleAddress(14), Provider: sampleAddress(15), Data: []byte{9}, Min: chain.U64(4_999),
			Max: chain.Pow10(30), TimeMs: 8,
			Source: "devnet", ReceivedMs: 10,
		},
		"job": Job{job.Job{
			ID: "liquidation:0x01:2", Kind: job.Liquidation, Key: sampleHash(16), Account: sampleAddress(17),
			Market:     sampleAddress(18),
			Collateral: sampleAddress(19), IsLong: true, SizeDeltaUsd: chain.U64(5),
			Tokens: []chain.Address{sampleAddress(14)}, DueSinceMs: 1,
			ExpiresMs: 2, Class: job.ClassLiquidation, Ratio: chain.Pow10(29), Frozen: true, Signer: sampleAddress(20),
			Evidence: job.Evidence{Block: block, Generation: 1, Reports: []string{"a", "b"},
				Reason: "ratio 0.1 below 1"},
		}},
		"result": Result{job.Result{
			JobID: "order:0x02:1", Attempt: 2, Kind: job.Order, Key: sampleHash(21), Account: sampleAddress(17),
			Outcome: job.LostRace,
			Reason:  "EmptyOrder()", TxHash: sampleHash(22), Signer: sampleAddress(20), Nonce: 12, Block: block,
			GasUsed: 3, GasPrice: 4,
			DueSinceMs: 5, AtMs: 6, Market: sampleAddress(18), Collateral: sampleAddress(19), IsLong: true,
			GivenUp: true,
			Settlement: &job.Settlement{
				OrderKey: sampleHash(23), SizeDeltaUsd: chain.Pow10(34), SizeLeftUsd: chain.U64(1),
				ExecutionPrice: chain.Pow10(15), PnlUsd: chain.I64(-7),
				ImpactUsd: chain.I64(8), CollateralDelta: chain.U64(9), CollateralLeft: chain.U64(10), Insolvent: true,
				BadDebtUsd: chain.U64(11), BadDebtStep: "pnl",
				Fees: job.Fees{Position: chain.U64(12), Borrowing: chain.U64(13), Funding: chain.U64(14),
					Liquidation: chain.U64(15), Total: chain.U64(54)},
				Returned: []job.Payment{{Token: sampleAddress(19), Amount: chain.U64(300)}},
			},
		}},
	}
}

// The bytes on the topics are kept for ever (PIPE-8): what an older build wrote must read the same.
func TestGolden(t *testing.T) {
	if got, want := len(samples()), len(decoders); got != want {
		t.Fatalf("%d samples for %d kinds of records", got, want)
	}
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			r, err := Encode([]byte("k"), m, 7, 2)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", fmt.Sprintf("%s.v%d.hex", name, SchemaVersion))
			got := hex.EncodeToString(r.Value) + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("bytes of %s changed:\n got %s\nwant %s", name, got, want)
			}
			golden, _ := hex.DecodeString(strings.TrimSpace(string(want)))
			back, meta, err := Decode(Record{Value: golden, Headers: r.Headers})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, m) {
				t.Errorf("read back %+v, want %+v", back, m)
			}
			if meta != (Meta{Kind: m.kind(), Version: SchemaVersion, Epoch: 7, Filter: 2}) {
				t.Errorf("headers say %+v", meta)
			}
		})
	}
}

// The end of a block without records is as short as can be, and is kept for ever too.
func TestBriefBlockEnd(t *testing.T) {
	want := BlockEnd{Block: chain.BlockRef{Number: 77, Hash: sampleHash(1), Parent: sampleHash(2),
		TimeMs: 1_700_000_000_450}, Digest: Digest(nil), FinalDepth: 2}
	r, err := Encode(make([]byte, 32), want, 300, 2)
	if err != nil {
		t.Fatal(err)
	}
	const value = "0a4d084d1220" + "0101010101010101010101010101010101010101010101010101010101010101" + "1a20" +
		"0202020202020202020202020202020202020202020202020202020202020202" + "20c2d395ffbc31" + "2002"
	if got := hex.EncodeToString(r.Value); r.Key != nil || len(r.Headers) != 1 || r.Headers[0].Key != "e" ||
		hex.EncodeToString(r.Headers[0].Value) != "01ac0202" || got != value {
		t.Errorf("the record is now %x %v %s", r.Key, r.Headers, got)
	}
	m, meta, err := Decode(r)
	if err != nil || m != want || meta != (Meta{Kind: KindBlockEnd, Version: SchemaVersion, Epoch: 300, Filter: 2}) {
		t.Errorf("%+v, %+v, %v", m, meta, err)
	}
	for _, header := range []string{"", "00ac0202", "01ac02", "01ac020200", "02ac0202", "01ac02ffffffff7f", "0180"} {
		b, err := hex.DecodeString(header)
		if err != nil {
			t.Fatal(err)
		}
		r.Headers = []Header{{"e", b}}
		if _, _, err := Decode(r); !errors.Is(err, ErrUnknown) {
			t.Errorf("header %s: %v, want ErrUnknown", header, err)
		}
	}
}

// Any header that reads as an epoch and a filter is the one that would be written for them, or longer.
func TestBriefMeta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epoch, filter := rapid.Uint64().Draw(t, "epoch"), rapid.Uint32().Draw(t, "filter")
		meta, err := readBriefMeta(briefMeta(epoch, filter))
		if err != nil || meta.Epoch != epoch || meta.Filter != filter || meta.Version != SchemaVersion {
			t.Fatalf("%+v, %v", meta, err)
		}
		if b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"); len(b) > 0 {
			if meta, err := readBriefMeta(b); err == nil && len(briefMeta(meta.Epoch, meta.Filter)) > len(b) {
				t.Fatalf("%x reads as %+v", b, meta)
			}
		}
	})
}

func TestDecodeStopsAtTheUnknown(t *testing.T) {
	good, err := Encode(nil, Epoch{Number: 1}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value []byte) Record {
		r := good
		r.Headers = nil
		for _, h := range good.Headers {
			if h.Key == key {
				h.Value = value
			}
			r.Headers = append(r.Headers, h)
		}
		return r
	}
	for name, r := range map[string]Record{
		"unknown kind":      with("t", []byte("TELEPATHY")),
		"newer schema":      with("sv", []byte{0, SchemaVersion + 1}),
		"no headers":        {Value: good.Value},
		"short version":     with("sv", []byte{1}),
		"epoch of no bytes": with("ep", nil),
	} {
		if _, _, err := Decode(r); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %v, want ErrUnknown", name, err)
		}
	}
}

func TestDecodeRefusesWrongSizes(t *testing.T) {
	r, err := Encode(nil, Param{Key: sampleHash(1)}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	// a Param's bytes read as another message have fields of the wrong size or none
	r.Headers[0].Value = []byte(KindFinalized)
	r.Value = r.Value[:len(r.Value)-1]
	if _, _, err := Decode(r); err == nil {
		t.Error("a truncated value was read")
	}
	empty, _ := Encode(nil, Epoch{}, 0, 0)
	empty.Headers[0].Value = []byte(KindLog)
	if _, _, err := Decode(empty); err == nil {
		t.Error("a log without hashes was read")
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		r, err := Encode(nil, m, 1, 1)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(m.kind()), r.Value)
	}
	f.Fuzz(func(t *testing.T, kind string, value []byte) {
		r := Record{Value: value, Headers: []Header{{"t", []byte(kind)}, {"sv", []byte{0, 1}}}}
		m, _, err := Decode(r)
		if err != nil {
			return
		}
		again, err := Encode(nil, m, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := Decode(again)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
	})
}

func TestDigestSeesOrderAndBytes(t *testing.T) {
	a, _ := Encode(nil, Epoch{Number: 1}, 0, 0)
	b, _ := Encode(nil, Epoch{Number: 2}, 0, 0)
	c, _ := Encode(nil, Finalized{}, 0, 0)
	c.Value = a.Value
	digests := map[[32]byte]bool{}
	for _, rs := range [][]Record{nil, {a}, {b}, {c}, {a, b}, {b, a}} {
		digests[Digest(rs)] = true
	}
	if len(digests) != 6 {
		t.Errorf("%d different digests of 6 batches", len(digests))
	}
}

func TestPartitionIsPinned(t *testing.T) {
	if Partition(chain.Hash{}, 4) != 0 {
		t.Error("the zero key belongs to partition 0")
	}
	var seen [4]int
	for b := range 256 {
		seen[Partition(sampleHash(byte(b)), 4)]++
	}
	if seen != [4]int{73, 60, 52, 71} {
		t.Errorf("the partition of a key must never change; spread of 256 keys is now %v", seen)
	}
}

// A word that an audit has read says at which block, and which word it is.
func TestAuditedParam(t *testing.T) {
	read := chain.BlockRef{Number: 70, Hash: sampleHash(30), Parent: sampleHash(31), TimeMs: 5}
	want := Param{Block: chain.BlockRef{Number: 77, Hash: sampleHash(1)}, Key: sampleHash(9), Value: sampleHash(10),
		Read: read, Name: "VIRTUAL_TOKEN_ID(0x01)"}
	r, err := Encode(nil, want, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := Decode(r)
	if p, is := got.(Param); err != nil || !is || p != want || !p.Audited() {
		t.Errorf("%+v, %v", got, err)
	}
	if (Param{Block: want.Block}).Audited() {
		t.Error("a word that was read at its own block is called audited")
	}
}
