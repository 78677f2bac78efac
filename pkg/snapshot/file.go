package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A file is a zstd stream of tables. A table is its name (one byte of length before it), and its rows in frames (four
// bytes of length before each), ended by a frame of length 0. A name of length 0 ends the file.
const (
	frameBytes = 64 << 10
	// A decoder takes no more memory than this, whatever the header of a file asks for.
	windowBytes = 8 << 20
)

// Writer writes one partition's file.
type Writer struct {
	packed *zstd.Encoder
	out    *measured
	tables []Table
}

// newWriter writes to out.
func newWriter(out io.Writer) (*Writer, error) {
	m := &measured{Writer: out, sum: sha256.New()}
	packed, err := zstd.NewWriter(m, zstd.WithWindowSize(windowBytes), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &Writer{packed: packed, out: m}, nil
}

// Table writes a table: writeRows writes its rows, in the binary form of COPY, and returns how many they were.
func (w *Writer) Table(name string, writeRows func(io.Writer) (rows int64, err error)) error {
	if len(name) == 0 || len(name) > 255 {
		return fmt.Errorf("%q is no name of a table", name)
	}
	if _, err := w.packed.Write(append([]byte{byte(len(name))}, name...)); err != nil {
		return err
	}
	counted := &rowCounter{}
	frames := bufio.NewWriterSize(frameWriter{w.packed}, frameBytes)
	rows, err := writeRows(io.MultiWriter(frames, counted))
	if err == nil {
		err = frames.Flush()
	}
	if err == nil {
		_, err = w.packed.Write(make([]byte, 4))
	}
	if err == nil {
		err = counted.end(rows)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	w.tables = append(w.tables, Table{Name: name, Rows: rows})
	return nil
}

// close ends the file.
func (w *Writer) close() error {
	if _, err := w.packed.Write([]byte{0}); err != nil {
		return err
	}
	return w.packed.Close()
}

// measured counts and sums up what is written.
type measured struct {
	io.Writer
	bytes int64
	sum   hash.Hash
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	m.bytes += int64(n)
	m.sum.Write(p[:n])
	return n, err
}

func (m *measured) hex() string { return hex.EncodeToString(m.sum.Sum(nil)) }

type frameWriter struct{ io.Writer }

func (w frameWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := w.Writer.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p)))); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

var errTorn = errors.New("it is torn or altered")

// readFile hands the rows of each table to take, in the order of the file, and holds the file against what the manifest
// says of it. What take leaves unread is read all the same.
func readFile(in io.Reader, want Part, take func(table string, rows io.Reader) error) error {
	raw := &measured{Writer: io.Discard, sum: sha256.New()}
	tee := io.TeeReader(in, raw)
	packed, err := zstd.NewReader(tee, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowBytes),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := readTables(packed, want.Tables, take); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return fmt.Errorf("%w: %w", errTorn, err)
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return err
	}
	if raw.bytes != want.Bytes || raw.hex() != want.Sum {
		return fmt.Errorf("%w: %d bytes with the sum %.16s, and must be %d with %.16s", errTorn, raw.bytes, raw.hex(),
			want.Bytes, want.Sum)
	}
	return nil
}

func readTables(packed io.Reader, want []Table, take func(table string, rows io.Reader) error) error {
	for i := 0; ; i++ {
		name, err := readName(packed)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errTorn, err)
		case name == "" && i == len(want):
			return nil
		case i >= len(want) || name != want[i].Name:
			return fmt.Errorf("%w: table %q stands at place %d", errTorn, name, i)
		}
		frames, counted := &frameReader{in: packed}, &rowCounter{}
		rows := io.TeeReader(frames, counted)
		if err := take(name, rows); err != nil {
			if frames.err != nil {
				return fmt.Errorf("%w: table %s: %w", errTorn, name, frames.err)
			}
			return fmt.Errorf("table %s: %w", name, err)
		}
		if _, err := io.Copy(io.Discard, rows); err != nil {
			return fmt.Errorf("%w: table %s: %w", errTorn, name, err)
		}
		if err := counted.end(want[i].Rows); err != nil {
			return fmt.Errorf("%w: table %s: %w", errTorn, name, err)
		}
	}
}

func readName(in io.Reader) (string, error) {
	var length [1]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return "", err
	}
	name := make([]byte, length[0])
	_, err := io.ReadFull(in, name)
	return string(name), err
}

// frameReader reads the frames of one table.
type frameReader struct {
	in   io.Reader
	left uint32
	done bool
	err  error // other than the end
}

func (f *frameReader) Read(p []byte) (n int, err error) {
	if f.done {
		return 0, io.EOF
	}
	defer func() {
		if err != nil && !errors.Is(err, io.EOF) {
			f.err = err
		}
	}()
	if f.left == 0 {
		var length [4]byte
		if _, err := io.ReadFull(f.in, length[:]); err != nil {
			return 0, unexpected(err)
		}
		if f.left = binary.BigEndian.Uint32(length[:]); f.left == 0 {
			f.done = true
			return 0, io.EOF
		}
	}
	n, err = f.in.Read(p[:min(len(p), int(f.left))])
	f.left -= uint32(n)
	if n > 0 {
		err = nil // it comes again
	}
	return n, unexpected(err)
}

// unexpected is an end where there must be more.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
