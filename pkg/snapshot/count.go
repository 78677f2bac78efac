package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// copyHeader begins what COPY writes in binary form: the signature, no flags, no extension. (PostgreSQL manual, COPY,
// "Binary Format".)
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// rowCounter reads what COPY has written, and counts rows: each is a number of fields (two bytes, -1 after the last
// row), and for each field four bytes of length (-1 for NULL) and the value.
type rowCounter struct {
	head   int    // bytes of the header read
	need   []byte // of a number that is not all there yet
	skip   int64  // bytes of a value that are still to come
	fields int    // of the row that are still to come
	rows   int64
	ended  bool
	wrong  error
}

var errNotCopy = errors.New("these are no rows as COPY writes them")

// Write never fails, so that whoever writes rows is not stopped by who counts them: end returns what is wrong.
func (c *rowCounter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && c.wrong == nil; {
		rest = rest[c.take(rest):]
	}
	return len(p), nil
}

// take reads on by at least one byte and returns by how many.
func (c *rowCounter) take(p []byte) int {
	switch {
	case c.ended:
		c.wrong = fmt.Errorf("%w: something follows their end", errNotCopy)
		return len(p)
	case c.head < len(copyHeader):
		n := min(len(p), len(copyHeader)-c.head)
		if string(p[:n]) != copyHeader[c.head:c.head+n] {
			c.wrong = errNotCopy
		}
		c.head += n
		return n
	case c.skip > 0:
		n := min(int64(len(p)), c.skip)
		c.skip -= n
		return int(n)
	}
	width := 4
	if c.fields == 0 {
		width = 2
	}
	n := min(width-len(c.need), len(p))
	if c.need = append(c.need, p[:n]...); len(c.need) == width {
		c.number()
		c.need = c.need[:0]
	}
	return n
}

// number takes a number that is complete.
func (c *rowCounter) number() {
	if c.fields > 0 {
		c.fields--
		switch length := int32(binary.BigEndian.Uint32(c.need)); {
		case length >= 0:
			c.skip = int64(length)
		case length != -1:
			c.wrong = fmt.Errorf("%w: a field of length %d", errNotCopy, length)
		}
		return
	}
	switch fields := int16(binary.BigEndian.Uint16(c.need)); {
	case fields == -1:
		c.ended = true
	case fields <= 0:
		c.wrong = fmt.Errorf("%w: a row of %d fields", errNotCopy, fields)
	default:
		c.fields = int(fields)
		c.rows++
	}
}

// end returns an error if the rows, or their number, are wrong.
func (c *rowCounter) end(want int64) error {
	switch {
	case c.wrong != nil:
		return c.wrong
	case !c.ended:
		return fmt.Errorf("%w: they do not end", errNotCopy)
	case c.rows != want:
		return fmt.Errorf("there are %d rows and must be %d", c.rows, want)
	}
	return nil
}
