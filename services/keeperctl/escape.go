package keeperctl

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Reasons of reverts, answers of endpoints, causes that somebody wrote and records of topics are printed for operators,
// and any of them may hold what a terminal takes for a command: text that erases the screen, renames the window or
// turns letters around.

// escaped is a writer that hands on text as people may see it: what a terminal would obey stands there as \uXXXX, which
// JSON reads as well. Lines and tabs stay. It is safe for concurrent use.
func escaped(to io.Writer) io.Writer { return &escaper{to: to} }

type escaper struct {
	mutex sync.Mutex
	to    io.Writer
	begun []byte // the first bytes of a letter whose others have not come yet
}

// Write implements io.Writer.
func (e *escaper) Write(p []byte) (int, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	text := append(e.begun, p...) //nolint:gocritic // The letter that had begun goes on.
	whole := len(text)
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				whole -= back
			}
			break
		}
	}
	e.begun = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(e.to, legible(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// legible is text of several lines without anything that a terminal obeys. Bytes that are no letters become U+FFFD.
func legible(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

// inLine is text for one line or one cell of a table: line breaks and tabs are escaped too.
func inLine(text string) string { return escape(text, func(rune) bool { return false }) }

func escape(text string, kept func(rune) bool) string {
	obeyed := func(r rune) bool { return !unicode.IsPrint(r) && !kept(r) }
	if strings.IndexFunc(text, obeyed) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		high, low := utf16.EncodeRune(r)
		switch {
		case !obeyed(r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// legibleError is an error whose text may hold what others have written.
type legibleError struct{ error }

// Error is the text without anything that a terminal obeys.
func (e legibleError) Error() string { return legible(e.error.Error()) }

// Unwrap returns the error as it came.
func (e legibleError) Unwrap() error { return e.error }
