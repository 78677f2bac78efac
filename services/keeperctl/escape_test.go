package keeperctl

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"perpkeeper/pkg/kafka/bus"
)

// hostile is a text that erases the screen, renames the window and says what is not so, in the forms terminals know:
// ESC, the one-byte CSI as a letter and as a bare byte, DEL, a carriage return, and letters that turn a line around.
const hostile = "\x1b[2J\x1b[1;1H\x1b]0;owned\x07all is well\u009b31m\x9b\x7f\r\u202eback\u2066\U000E0041"

// obeyed finds what a terminal would not just show.
func obeyed(text string) (found []rune) {
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			found = append(found, r)
		}
	}
	if !utf8.ValidString(text) {
		found = append(found, utf8.RuneError)
	}
	return found
}

// What others have written is shown, and not obeyed, in tables, in JSON and in complaints.
func TestTextFromOutsideIsEscaped(t *testing.T) {
	o := newOffice(t)
	letter := o.givenUp(lostJob(1), 1)
	for i := range letter.Headers {
		if letter.Headers[i].Key == "error" {
			letter.Headers[i].Value = []byte(hostile)
		}
	}
	letter.Headers = append(letter.Headers, bus.Header{Key: "error", Value: []byte(hostile)})
	o.write(letter)
	for _, line := range []string{"list", "show 0"} {
		var out bytes.Buffer
		d := o.deadLetters
		d.out = printer{Writer: escaped(&out)}
		if err := d.run(t.Context(), strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if found := obeyed(out.String()); len(found) > 0 {
			t.Errorf("dlq %s prints %q: %q", line, found, out.String())
		}
		if line == "show 0" && !json.Valid(out.Bytes()) {
			t.Errorf("dlq %s is no JSON any more: %q", line, out.String())
		}
	}
}

// Whatever a command prints or fails with, Run's way to the terminal is the same.
func TestCommandLineIsEscaped(t *testing.T) {
	var out, complaint bytes.Buffer
	Run(t.Context(), []string{hostile}, IO{In: strings.NewReader(""), Out: &out, Err: &complaint})
	if found := obeyed(out.String() + complaint.String()); len(found) > 0 || complaint.Len() == 0 {
		t.Errorf("%q is printed: %q", found, complaint.String())
	}
}

// A letter that comes in several pieces is whole, and JSON means what it meant.
func FuzzEscaped(f *testing.F) {
	f.Add(hostile, 3)
	f.Add("größer — 价格", 2) //nolint:gosmopolitan // names of other languages are what is tried
	f.Add("\u009b", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		var out bytes.Buffer
		w := escaped(&out)
		at = min(max(at, 0), len(text))
		for _, piece := range []string{text[:at], text[at:]} {
			if n, err := io.WriteString(w, piece); err != nil || n != len(piece) {
				t.Fatal(n, err)
			}
		}
		if found := obeyed(out.String()); len(found) > 0 {
			t.Errorf("%q: %q", found, out.String())
		}
		if len(obeyed(text)) == 0 && out.String() != text {
			t.Errorf("%q became %q", text, out.String())
		}
		if inLine(text) != inLine(inLine(text)) || strings.ContainsAny(inLine(text), "\n\t") {
			t.Errorf("%q in a line: %q", text, inLine(text))
		}
		before, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var after string
		if err := json.Unmarshal([]byte(legible(string(before))), &after); err != nil ||
			after != strings.ToValidUTF8(text, "\uFFFD") && utf8.ValidString(text) {
			t.Errorf("%q is read back as %q, %v", text, after, err)
		}
	})
}
