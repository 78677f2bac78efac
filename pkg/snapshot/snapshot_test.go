package snapshot_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/snapshot"
	"perpkeeper/pkg/snapshot/store/storetest"
)

// rows are in the form in which COPY writes them: fields by row, nil is NULL.
type rows [][][]byte

func (r rows) copyTo(w io.Writer) (int64, error) {
	b := []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, row := range r {
		b = binary.BigEndian.AppendUint16(b, uint16(len(row)))
		for _, field := range row {
			if field == nil {
				b = append(b, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
		}
	}
	_, err := w.Write(append(b, 0xff, 0xff))
	return int64(len(r)), err
}

var anyRows = rapid.SliceOfN(rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 4), 0, 40)

var tables = []string{"stream_offset", "position", "perp_order"}

// state is rows by partition and table.
type state [2][3]rows

func manifest(taken time.Time) snapshot.Manifest {
	m := snapshot.Manifest{Layout: 6, ChainID: 56, Generation: 3, Taken: taken}
	for p := range 2 {
		m.Parts = append(m.Parts, snapshot.Part{
			Partition: p, Next: 100 + int64(p), Tip: chain.BlockRef{Number: 45, Hash: chain.Hash{1}},
			Final: chain.BlockRef{Number: 43 - uint64(p), Hash: chain.Hash{2}},
		})
	}
	return m
}

func write(to snapshot.Store, m snapshot.Manifest, s state) (snapshot.Manifest, error) {
	return snapshot.Write(context.Background(), to, m, func(_ context.Context, part int, w *snapshot.Writer) error {
		for i, table := range tables {
			if err := w.Table(table, s[part][i].copyTo); err != nil {
				return err
			}
		}
		return nil
	})
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// What was written is read, whatever it is, and counted.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s state
		for p := range s {
			for i := range s[p] {
				s[p][i] = anyRows.Draw(t, "rows")
			}
		}
		memory := storetest.Memory{}
		m, err := write(memory, manifest(noon), s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := snapshot.Verify(t.Context(), memory, "20260301T120000Z-56-42")
		if err != nil || got.Rows() != m.Rows() || got.Bytes() == 0 || got.FinalBlock().Number != 42 {
			t.Fatalf("got %+v, %v", got, err)
		}
		for p := range s {
			i := 0
			err := snapshot.ReadPart(t.Context(), memory, got, p, func(table string, in io.Reader) error {
				var want bytes.Buffer
				_, _ = s[p][i].copyTo(&want)
				if err := iotest.TestReader(struct{ io.Reader }{in}, want.Bytes()); err != nil || table != tables[i] {
					return fmt.Errorf("table %s: %w", table, err)
				}
				i++
				return nil
			})
			if err != nil || i != len(tables) {
				t.Fatalf("after %d tables: %v", i, err)
			}
		}
	})
}

func some(n int) (s state) {
	for p := range s {
		for i := range s[p] {
			for k := range n {
				s[p][i] = append(s[p][i], [][]byte{[]byte(fmt.Sprint(p, i, k)), nil, {}})
			}
		}
	}
	return s
}

// Every byte matters, and every length: a snapshot of which one file was torn or altered anywhere is refused in one
// line.
func TestTornAndAlteredIsRefused(t *testing.T) {
	memory := storetest.Memory{}
	m, err := write(memory, manifest(noon), some(3))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, change func(storetest.Memory)) {
		t.Helper()
		broken := maps.Clone(memory)
		change(broken)
		_, err := snapshot.Verify(t.Context(), broken, m.Name())
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), m.Name()) {
			t.Fatalf("%s: got %v", what, err)
		}
	}
	for name, content := range memory {
		for i := range content {
			refused(fmt.Sprintf("%s torn at %d", name, i), func(s storetest.Memory) { s[name] = content[:i] })
			refused(fmt.Sprintf("%s altered at %d", name, i), func(s storetest.Memory) {
				s[name] = slices.Clone(content)
				s[name][i] ^= 1
			})
		}
		refused(name+" grown", func(s storetest.Memory) { s[name] = append(slices.Clone(content), 0) })
		refused(name+" missing", func(s storetest.Memory) { delete(s, name) })
	}
	refused("files exchanged", func(s storetest.Memory) {
		a, b := path.Join(m.Name(), m.Parts[0].File), path.Join(m.Name(), m.Parts[1].File)
		s[a], s[b] = s[b], s[a]
	})
}

// What fails while it is written is no snapshot, and says why.
func TestUnfinishedIsNoSnapshot(t *testing.T) {
	why := errors.New("the database is gone")
	memory := storetest.Memory{}
	_, err := snapshot.Write(t.Context(), memory, manifest(noon), func(_ context.Context, part int,
		w *snapshot.Writer) error {
		if part == 1 {
			return why
		}
		return w.Table("position", some(1)[0][1].copyTo)
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	full := errors.New("no space is left")
	if _, err := write(storetest.Failing{Store: memory, Err: full}, manifest(noon), some(1000)); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if names, err := snapshot.List(t.Context(), memory); err != nil || len(names) != 0 {
		t.Errorf("there are %v, %v", names, err)
	}
	for _, wrong := range []rows{{{}}} { // a row without fields is nothing that COPY writes
		err := wrongRows(wrong)
		if err == nil {
			t.Errorf("%v was written", wrong)
		}
	}
}

func wrongRows(r rows) error {
	_, err := snapshot.Write(context.Background(), storetest.Memory{}, manifest(noon), func(_ context.Context, _ int,
		w *snapshot.Writer) error {
		return w.Table("position", r.copyTo)
	})
	return err
}

// The newest stay; what a killed process has left goes after a day, and what is none of ours stays.
func TestPrune(t *testing.T) {
	memory := storetest.Memory{"notes.txt": nil, "20260301T000000Z-56-9/partition-0.zst": nil,
		"20260305T000000Z-56-9/partition-0.zst": nil, "20260305T000000Z-56-9/partition-1.zst": nil}
	var names []string
	for day := range 5 {
		m, err := write(memory, manifest(noon.AddDate(0, 0, day)), some(1))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, m.Name())
	}
	now := noon.AddDate(0, 0, 4)
	removed, err := snapshot.Prune(t.Context(), memory, 2, now)
	if want := append([]string{"20260301T000000Z-56-9"}, names[:3]...); err != nil ||
		!slices.Equal(slices.Sorted(slices.Values(removed)), want) {
		t.Errorf("removed %v, want %v, %v", removed, want, err)
	}
	left, err := snapshot.List(t.Context(), memory)
	if err != nil || !slices.Equal(left, names[3:]) || len(memory) != 1+2+2*3 {
		t.Errorf("left are %v in %d files, %v", left, len(memory), err)
	}
	for _, name := range left {
		if _, err := snapshot.Verify(t.Context(), memory, name); err != nil {
			t.Error(err)
		}
	}
}

// Names that people type are refused before anybody is asked.
func TestNames(t *testing.T) {
	for _, name := range []string{"", "latest", "../20260301T120000Z-56-42", "20260301T120000Z-56-42/manifest.json"} {
		if _, err := snapshot.Read(t.Context(), storetest.Memory{}, name); err == nil ||
			!strings.Contains(err.Error(), "no name of a snapshot") {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err := snapshot.Read(t.Context(), storetest.Memory{}, "20260301T120000Z-56-42")
	if err == nil || !strings.Contains(err.Error(), "there is no snapshot") {
		t.Error(err)
	}
	if at, is := snapshot.TakenAt("20260301T120000Z-56-42"); !is || !at.Equal(noon) {
		t.Errorf("taken at %s, %t", at, is)
	}
}
