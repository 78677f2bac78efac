package keeperctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printer is where a command's results go, for people or, with --output json, for programs.
type printer struct {
	io.Writer

	json bool
}

// table is rows under heads. As JSON it is an array with an object for each row, whose keys are the heads, written as
// one word: "next nonce" is nextNonce.
type table struct {
	heads []string
	rows  [][]any
	empty string // what people read where there is no row; nothing = the heads alone
}

func newTable(heads ...string) *table { return &table{heads: heads} }

// add takes a row: numbers and truth values stay what they are in JSON, anything else is text.
func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// table prints a table.
func (p printer) table(t *table) error {
	switch {
	case p.json:
		return p.object(t.records())
	case len(t.rows) == 0 && t.empty != "":
		return sayf(p, "%s\n", t.empty)
	}
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(t.heads, "\t")) // the writer keeps what goes wrong for Flush
	for _, cells := range t.rows {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = inLine(fmt.Sprint(c))
		}
		_, _ = fmt.Fprintln(w, strings.Join(texts, "\t"))
	}
	return w.Flush()
}

// records are the rows as JSON has them.
func (t *table) records() []record {
	rows := make([]record, 0, len(t.rows))
	for _, cells := range t.rows {
		rows = append(rows, record{t.heads, cells})
	}
	return rows
}

// object prints a value as JSON.
func (p printer) object(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return sayf(p, "%s\n", text)
}

// either prints an object for programs, or a text for people.
func (p printer) either(v any, text string) error {
	if p.json {
		return p.object(v)
	}
	_, err := io.WriteString(p, text)
	return err
}

// sayf prints text that is no data, in whatever form data is wanted.
func sayf(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(out, format, args...)
	return err
}

// note is a line of advice for people alone.
func (p printer) note(line string) error {
	if p.json {
		return nil
	}
	return sayf(p, "%s\n", line)
}

// record is one row as an object, its keys in the order of the heads.
type record struct {
	heads []string
	cells []any
}

// MarshalJSON implements json.Marshaler.
func (r record) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	for i, head := range r.heads {
		cell := r.cells[i]
		switch cell.(type) {
		case int, int64, uint64, uint32, bool, json.RawMessage:
		default:
			cell = fmt.Sprint(cell)
		}
		value, err := json.Marshal(cell)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%q:%s", oneWord(head), value)
	}
	return []byte("{" + strings.TrimPrefix(b.String(), ",") + "}"), nil
}

// oneWord joins words as JSON keys have it.
func oneWord(head string) string {
	words := strings.FieldsFunc(head, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := range words[min(1, len(words)):] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return strings.Join(words, "")
}

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
