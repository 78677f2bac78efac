package evm

import (
	"bytes"
	"encoding/json"
	"strings"
)

// skip reads past one value of any kind, which nobody keeps: what it holds is as it likes, if it is JSON.
func (c *cursor) skip() error {
	if c.peek() == '"' && c.skipPlain() {
		return nil
	}
	from := c.at
	text, err := c.value()
	if err == nil && !json.Valid(text) {
		c.at = from
		err = c.fail("no value")
	}
	return err
}

// skipPlain reads past a string without escapes, which most of what nodes say is, in long hexadecimal digits.
func (c *cursor) skipPlain() bool {
	length := bytes.IndexByte(c.raw[c.at+1:], '"')
	if length < 0 {
		return false
	}
	for _, b := range c.raw[c.at+1:][:length] {
		if b < ' ' || b == '\\' {
			return false
		}
	}
	c.at += length + 2
	return true
}

// deepest is how many arrays and objects may stand in each other.
const deepest = 64

// value returns the next value as it stands, and looks for no more than its end: who reads it finds what is wrong
// within.
func (c *cursor) value() ([]byte, error) {
	c.peek()
	from := c.at
	for depth := 0; ; {
		switch b := c.peek(); b {
		case '{', '[':
			if depth++; depth > deepest {
				return nil, c.fail("more than %d values in each other", deepest)
			}
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
