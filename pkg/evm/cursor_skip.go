package evm

import (
	"bytes"
	"strings"
)

// skip reads past one value of any kind.
func (c *cursor) skip(depth int) error {
	if depth > deepest {
		return c.fail("more than %d values in each other", deepest)
	}
	switch b := c.peek(); {
	case b == '{':
		return c.skipObject(depth)
	case b == '[':
		return c.array(func(int) error { return c.skip(depth + 1) })
	case b == '"':
		return c.skipString()
	case b == '-' || '0' <= b && b <= '9':
		return c.skipNumber()
	case c.word("null"), c.word("true"), c.word("false"):
		return nil
	default:
		return c.fail("no value")
	}
}

// skipObject lets names be as they like: nobody reads them.
func (c *cursor) skipObject(depth int) error {
	c.at++
	if c.take('}') {
		return nil
	}
	for {
		if c.peek() != '"' {
			return c.fail("a field without a name")
		}
		if err := c.skipString(); err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		if err := c.skip(depth + 1); err != nil {
			return err
		}
		if c.take('}') {
			return nil
		}
		if err := c.expect(','); err != nil {
			return err
		}
	}
}

// skipString looks at one byte after the other only where something is escaped: most of what nodes say is long
// hexadecimal strings.
func (c *cursor) skipString() error {
	c.at++
	length := bytes.IndexByte(c.raw[c.at:], '"')
	if length < 0 {
		return c.fail("a string does not end")
	}
	text := c.raw[c.at : c.at+length]
	if bytes.IndexByte(text, '\\') >= 0 {
		return c.skipEscaped()
	}
	for _, b := range text {
		if b < ' ' {
			return c.fail("a control character in a string")
		}
	}
	c.at += length + 1
	return nil
}

func (c *cursor) skipEscaped() error {
	for ; c.at < len(c.raw); c.at++ {
		switch b := c.raw[c.at]; {
		case b == '"':
			c.at++
			return nil
		case b < ' ':
			return c.fail("a control character in a string")
		case b == '\\':
			if err := c.skipEscape(); err != nil {
				return err
			}
		}
	}
	return c.fail("a string does not end")
}

// value returns the next value as it stands, and looks for no more than its end: who reads it finds what is wrong
// within.
func (c *cursor) value() ([]byte, error) {
	c.peek()
	from := c.at
	for depth := 0; ; {
		switch b := c.peek(); b {
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case '"':
			if !c.pastString() {
				return nil, c.fail("a string does not end")
			}
		case ',', ':':
			if depth == 0 {
				return nil, c.fail("no value")
			}
			c.at++
			continue
		case 0:
			return nil, c.fail("no value")
		default:
			c.pastWord()
		}
		switch {
		case depth < 0:
			return nil, c.fail("no value")
		case depth == 0:
			return c.raw[from:c.at], nil
		}
	}
}

// pastString finds the quote that ends a string: one with an even number of backslashes before it.
func (c *cursor) pastString() bool {
	for at := c.at + 1; ; {
		length := bytes.IndexByte(c.raw[at:], '"')
		if length < 0 {
			return false
		}
		text := c.raw[at : at+length]
		at += length + 1
		if (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 0 {
			c.at = at
			return true
		}
	}
}

// pastWord goes to the end of a number or a word.
func (c *cursor) pastWord() {
	for c.at < len(c.raw) && strings.IndexByte(" \t\r\n,:[]{}\"", c.raw[c.at]) < 0 {
		c.at++
	}
}

// skipEscape stops at the last byte of the escape.
func (c *cursor) skipEscape() error {
	if c.at++; c.at >= len(c.raw) {
		return c.fail("a string does not end")
	}
	switch c.raw[c.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			if c.at++; c.at >= len(c.raw) {
				return c.fail("a string does not end")
			}
			if _, is := hexDigit(c.raw[c.at]); !is {
				return c.fail("an escape of no character")
			}
		}
		return nil
	default:
		return c.fail("an unknown escape")
	}
}

func (c *cursor) skipNumber() error {
	if c.raw[c.at] == '-' {
		c.at++
	}
	whole := c.at
	if n := c.skipDigits(); n == 0 || n > 1 && c.raw[whole] == '0' {
		return c.fail("no number")
	}
	if c.at < len(c.raw) && c.raw[c.at] == '.' {
		c.at++
		if c.skipDigits() == 0 {
			return c.fail("no number")
		}
	}
	if c.at < len(c.raw) && (c.raw[c.at] == 'e' || c.raw[c.at] == 'E') {
		c.at++
		if c.at < len(c.raw) && (c.raw[c.at] == '+' || c.raw[c.at] == '-') {
			c.at++
		}
		if c.skipDigits() == 0 {
			return c.fail("no number")
		}
	}
	return nil
}

func (c *cursor) skipDigits() (n int) {
	for ; c.at < len(c.raw) && '0' <= c.raw[c.at] && c.raw[c.at] <= '9'; c.at++ {
		n++
	}
	return n
}
