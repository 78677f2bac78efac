package evm

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// cursor reads one JSON document from front to back, with hexadecimal strings decoded straight into their place. It
// knows nothing of reflection and copies nothing but what is kept: most of what a scanner does with a node's answers is
// this.
//
// It is stricter than encoding/json where two readers could take a document for different things, because one of them
// may be the node's proxy, another keeper, or an auditor: the names of fields match exactly, no field comes twice,
// names and hexadecimal strings hold no escapes, nothing follows the document. All its errors are malformedErrors.
type cursor struct {
	raw []byte
	at  int
}

func (c *cursor) fail(format string, args ...any) error {
	return malformed("byte %d of the answer: %s", c.at, fmt.Sprintf(format, args...))
}

// peek returns the next byte that is no space, 0 at the end.
func (c *cursor) peek() byte {
	for ; c.at < len(c.raw); c.at++ {
		switch b := c.raw[c.at]; b {
		case ' ', '\t', '\n', '\r':
		default:
			return b
		}
	}
	return 0
}

// take reads a byte if it comes next.
func (c *cursor) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

func (c *cursor) expect(b byte) error {
	if !c.take(b) {
		return c.fail("%q is missing", b)
	}
	return nil
}

// word reads null, true or false if it comes next.
func (c *cursor) word(w string) bool {
	c.peek()
	if len(c.raw)-c.at < len(w) || string(c.raw[c.at:c.at+len(w)]) != w {
		return false
	}
	c.at += len(w)
	return true
}

// end makes sure that nothing follows.
func (c *cursor) end() error {
	if c.peek() != 0 || c.at < len(c.raw) {
		return c.fail("something follows the answer")
	}
	return nil
}

// array calls item at the beginning of each element.
func (c *cursor) array(item func(i int) error) error {
	if err := c.expect('['); err != nil {
		return err
	}
	if c.take(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := item(i); err != nil {
			return err
		}
		if c.take(']') {
			return nil
		}
		if err := c.expect(','); err != nil {
			return err
		}
	}
}

// object reads an object, and calls field at the beginning of each value, with its name. Field returns the field's
// number, or -1 for one that is not kept. None that is kept may come twice, and the first need of them must be there.
func (c *cursor) object(what string, need int, field func(name []byte) (i int, err error)) error {
	if err := c.expect('{'); err != nil {
		return err
	}
	var seen fields
	for first := true; !c.take('}'); first = false {
		if !first {
			if err := c.expect(','); err != nil {
				return err
			}
		}
		name, err := c.name()
		if err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		i, err := field(name)
		if err != nil {
			return err
		}
		if i >= 0 && !seen.once(i) {
			return c.fail("%s has %q twice", what, name)
		}
	}
	if !seen.all(need) {
		return c.fail("a field of %s is missing", what)
	}
	return nil
}

// quoted reads what stands between two quotes. An escaped quote ends it as well: whoever calls must refuse what has a
// backslash. It is valid until the document changes.
func (c *cursor) quoted() ([]byte, error) {
	if err := c.expect('"'); err != nil {
		return nil, err
	}
	length := bytes.IndexByte(c.raw[c.at:], '"')
	if length < 0 {
		return nil, c.fail("a string does not end")
	}
	from := c.at
	c.at += length + 1
	return c.raw[from : from+length], nil
}

// name reads the name of a field.
func (c *cursor) name() ([]byte, error) {
	text, err := c.quoted()
	for _, b := range text {
		if b == '\\' || b < ' ' || b > '~' {
			return nil, c.fail("a name with %q", b)
		}
	}
	return text, err
}

// digits reads a string behind 0x. The hexadecimal decoding of it refuses everything else that a string may hold.
func (c *cursor) digits() ([]byte, error) {
	text, err := c.quoted()
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return nil, c.fail("a hexadecimal string does not begin with 0x")
	}
	return text[2:], nil
}

// fixed fills dst.
func (c *cursor) fixed(dst []byte) error {
	digits, err := c.digits()
	if err != nil {
		return err
	}
	if len(digits) != hex.EncodedLen(len(dst)) {
		return c.fail("%d hexadecimal digits where there should be %d", len(digits), hex.EncodedLen(len(dst)))
	}
	if _, err := hex.Decode(dst, digits); err != nil {
		return c.fail("%v", err)
	}
	return nil
}

// bytes reads any number of bytes.
func (c *cursor) bytes() ([]byte, error) {
	digits, err := c.digits()
	if err != nil {
		return nil, err
	}
	out := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(out, digits); err != nil {
		return nil, c.fail("%v", err)
	}
	return out, nil
}

// number reads a quantity of at most bits bits, written without leading zeros.
func (c *cursor) number(bits int) (n uint64, err error) {
	digits, err := c.digits()
	if err != nil {
		return 0, err
	}
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' || len(digits) > bits/4 {
		return 0, c.fail("%q is no number of %d bits", digits, bits)
	}
	for _, d := range digits {
		v, is := hexDigit(d)
		if !is {
			return 0, c.fail("%q is no hexadecimal digit", d)
		}
		n = n<<4 | uint64(v)
	}
	return n, nil
}

func hexDigit(d byte) (byte, bool) {
	switch {
	case '0' <= d && d <= '9':
		return d - '0', true
	case 'a' <= d && d <= 'f':
		return d - 'a' + 10, true
	case 'A' <= d && d <= 'F':
		return d - 'A' + 10, true
	default:
		return 0, false
	}
}
