package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func read(in io.Reader) (all []Event, err error) {
	stream := &events{in: bufio.NewReader(in)}
	for {
		ev, err := stream.next()
		if err != nil {
			return all, err
		}
		all = append(all, ev)
	}
}

func TestEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"one":                     {"data: a\n\n", "[{  a}]"},
		"no space":                {"data:a\n\n", "[{  a}]"},
		"two spaces":              {"data:  a\n\n", "[{   a}]"},
		"several lines":           {"data: a\ndata: b\ndata\n\n", "[{  a\nb\n}]"},
		"empty data":              {"data\n\n", "[{  }]"},
		"no data":                 {"event: x\nid: 1\n\ndata: a\n\n", "[{1  a}]"},
		"name and id":             {"id: 7\nevent: price\ndata: a\n\ndata: b\n\n", "[{7 price a} {7  b}]"},
		"an id is reset":          {"id: 7\ndata: a\n\nid\ndata: b\n\n", "[{7  a} {  b}]"},
		"an id with a zero byte":  {"id: 7\nid: a\x00b\ndata: a\n\n", "[{7  a}]"},
		"a comment":               {": keepalive\n\ndata: a\n:\n\n", "[{  a}]"},
		"unknown fields":          {"retry: 3\nfoo: bar\ndata: a\n\n", "[{  a}]"},
		"carriage returns":        {"data: a\r\rdata: b\r\n\r\ndata: c\n\n", "[{  a} {  b} {  c}]"},
		"byte order mark":         {"\ufeffdata: a\n\n", "[{  a}]"},
		"cut off":                 {"data: a\n\ndata: b\n", "[{  a}]"},
		"cut off within the line": {"data: a\n\ndata: b", "[{  a}]"},
		"nothing":                 {"", "[]"},
	} {
		for _, in := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
			all, err := read(in)
			if got := fmt.Sprint(all); got != tt.want || !errors.Is(err, io.EOF) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
			}
		}
	}
	if _, err := read(io.LimitReader(endless{}, MaxAnswer+100)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("an endless line: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Whatever is written as events is read as it was written, whichever way lines end.
func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		var text strings.Builder
		var want []Event
		id := ""
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			if rapid.Bool().Draw(t, "has id") {
				id = rapid.StringMatching(`[0-9a-z]{0,5}`).Draw(t, "id")
				text.WriteString("id: " + id + end)
			}
			lines := rapid.SliceOfN(rapid.StringMatching(`[ -~é]{0,8}`), 1, 3).Draw(t, "lines")
			for _, l := range lines {
				text.WriteString("data: " + l + end)
			}
			text.WriteString(end)
			want = append(want, Event{ID: id, Data: strings.Join(lines, "\n")})
		}
		got, _ := read(strings.NewReader(text.String()))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: %v, want %v", text.String(), got, want)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add("id: 1\nevent: x\ndata: a\r\ndata: b\r\r: c\n\n")
	f.Add("\ufeffdata\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := read(strings.NewReader(text))
		if !errors.Is(err, io.EOF) || len(whole) > len(text) {
			t.Fatalf("%d events of %d bytes, %v", len(whole), len(text), err)
		}
		for _, ev := range whole {
			if strings.ContainsAny(ev.Data, "\r") || strings.ContainsAny(ev.ID+ev.Name, "\r\n") {
				t.Fatalf("%+v", ev)
			}
		}
		if halved, _ := read(iotest.HalfReader(strings.NewReader(text))); fmt.Sprint(halved) != fmt.Sprint(whole) {
			t.Fatalf("in pieces %v, at once %v", halved, whole)
		}
	})
}
