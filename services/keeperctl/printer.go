package keeperctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
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
		_, err := fmt.Fprintln(p, t.empty)
		return err
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
	_, err = fmt.Fprintf(p, "%s\n", text)
	return err
}

// either prints an object for programs, or a text for people.
func (p printer) either(v any, text string) error {
	if p.json {
		return p.object(v)
	}
	_, err := io.WriteString(p, text)
	return err
}

// note is a line of advice for people alone.
func (p printer) note(line string) error {
	if p.json {
		return nil
	}
	_, err := fmt.Fprintln(p, line)
	return err
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
