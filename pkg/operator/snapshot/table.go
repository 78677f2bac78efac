package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// table is a table in what pg_restore writes. It reads as its rows in the text form of COPY, a line each.
type table struct {
	name, columns string

	rows *rows
}

// Read reads.
func (t table) Read(p []byte) (int, error) { return t.rows.Read(p) }

// count reads the rows and counts them.
func (t table) count() (n int64, err error) {
	buffer := make([]byte, 1<<16)
	for {
		read, err := t.Read(buffer)
		n += int64(bytes.Count(buffer[:read], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// copyLine begins a table. Columns are nothing but names, so that nothing else can be said with them.
var copyLine = regexp.MustCompile(`^COPY state_g[0-9]+\."?([a-z_]+)"? \(([a-z0-9_", ]+)\) FROM stdin;\n$`)

// tables hands over the tables of a script. All of a table's rows have to be read.
func tables(ctx context.Context, script io.Reader, take func(context.Context, table) error) error {
	in := bufio.NewReaderSize(script, 1<<16)
	for {
		line, err := in.ReadString('\n')
		switch found := copyLine.FindStringSubmatch(line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case found != nil:
			if err := take(ctx, table{found[1], found[2], &rows{in: in}}); err != nil {
				return fmt.Errorf("table %s: %w", found[1], err)
			}
		}
	}
}

// rows are the lines up to the one that ends a table.
type rows struct {
	in     *bufio.Reader
	line   []byte // what is left of it
	within bool   // the line goes on with what is read next
	ended  bool
}

// Read fills p, as far as there are rows: COPY sends a packet for each call.
func (r *rows) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.line) == 0 {
			if err := r.next(); err != nil {
				return n, err
			}
		}
		taken := copy(p[n:], r.line)
		n, r.line = n+taken, r.line[taken:]
	}
	return n, nil
}

func (r *rows) next() error {
	if r.ended {
		return io.EOF
	}
	line, err := r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil && !errors.Is(err, bufio.ErrBufferFull):
		return err
	case !r.within && string(line) == "\\.\n":
		r.ended = true
		return io.EOF
	}
	r.within, r.line = err != nil, line
	return nil
}
