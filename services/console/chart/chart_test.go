package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func values(of ...int) (all []*chain.Uint) {
	for _, v := range of {
		if v < 0 {
			all = append(all, nil)
			continue
		}
		all = append(all, new(chain.U64(uint64(v))))
	}
	return all
}

var (
	written  = Axes{Title: "t", Value: chain.Uint.String, Along: []string{"then", "now"}}
	path     = regexp.MustCompile(`class="line [^"]*" d="([^"]*)"`)
	rect     = regexp.MustCompile(`<rect class="([^"]*)" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/>`)
	greatest = chain.Pow10(77)
)

// wellFormed fails where a drawing is no XML: where a tag stays open, say, or a text was not escaped.
func wellFormed(t *testing.T, drawing string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(drawing)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, drawing)
		}
	}
}

func TestSparkline(t *testing.T) {
	for name, c := range map[string]struct {
		values []*chain.Uint
		fit    bool
		want   string // of the path
	}{
		"nothing":       {nil, false, ""},
		"gaps alone":    {values(-1, -1), false, ""},
		"one point":     {values(5), false, "M0 0h1"},
		"zeros":         {values(0, 0), false, "M0 400h1L1200 400"},
		"from zero":     {values(0, 5, 10), false, "M0 400h1L600 200L1200 0"},
		"fitted":        {values(90, 95, 100), true, "M0 400h1L600 200L1200 0"},
		"level, fitted": {values(7, 7), true, "M0 400h1L1200 400"},
		"a gap":         {values(4, 2, -1, 4, -1), false, "M0 0h1L300 200M900 0h1"},
		"huge":          {[]*chain.Uint{&greatest, new(greatest.Div(chain.U64(2)))}, false, "M0 0h1L1200 200"},
	} {
		drawing := string(Sparkline("<a & \"b\">", c.values, c.fit))
		wellFormed(t, drawing)
		if found := path.FindStringSubmatch(drawing + `class="line " d=""`); found[1] != c.want {
			t.Errorf("%s: %q, want %q", name, found[1], c.want)
		}
		if title := `aria-label="&lt;a &amp; &#34;b&#34;&gt;"`; c.want != "" && (!strings.Contains(drawing, title) ||
			!strings.Contains(drawing, `role="img"`)) {
			t.Errorf("%s: nobody is told what it is: %s", name, drawing)
		}
	}
}

func TestLines(t *testing.T) {
	drawing := string(Lines(written, []Series{{Name: "a<b", Note: "1&2", Class: "s1", Values: values(0, 30)},
		{Name: "c", Class: "s2", Values: values(-1, 15)}, {Name: "empty", Class: "s3"}}))
	wellFormed(t, drawing)
	var lines []string
	for _, found := range path.FindAllStringSubmatch(drawing, -1) {
		lines = append(lines, found[1])
	}
	if got := strings.Join(lines, " | "); got != "M0 400h1L1200 100 | M1200 250h1 | " { // of 40
		t.Error(got)
	}
	for _, want := range []string{"<span>40</span><span>20</span><span>0</span>", "<span>then</span><span>now</span>",
		`<li><i class="s1"></i>a&lt;b <b>1&amp;2</b></li>`} {
		if !strings.Contains(drawing, want) {
			t.Errorf("no %s in\n%s", want, drawing)
		}
	}
	if Lines(written, []Series{{Values: values(-1)}}) != "" || Lines(written, nil) != "" {
		t.Error("nothing is drawn")
	}
	huge := string(Lines(written, []Series{{Values: []*chain.Uint{&greatest, nil}}}))
	if !strings.Contains(huge, "M0 0h1") {
		t.Errorf("the greatest value is not at the upper edge: %s", huge)
	}
	if Lines(written, []Series{{Values: []*chain.Uint{new(greatest.Add(perp.One))}}}) != "" {
		t.Error("a line is drawn whose axis has no end") // above 10^77 comes 2*10^77, which is above 2^256
	}
}

func TestBars(t *testing.T) {
	drawing := string(Bars(written, []string{"12:00", "<12:01>", "12:02"}, []Series{
		{Name: "one", Class: "t1", Values: values(1, 2, 0)},
		{Name: "two & three", Class: "t2", Values: values(0, 2, -1)}}))
	wellFormed(t, drawing)
	var got []string
	for _, found := range rect.FindAllStringSubmatch(drawing, -1) {
		got = append(got, strings.Join(found[1:], " "))
	}
	if want := "t1 0 300 320 100 | t1 400 200 320 200 | t2 400 0 320 200"; strings.Join(got, " | ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " | "), want)
	}
	if want := "<title>&lt;12:01&gt;: 4, one 2, two &amp; three 2</title>"; !strings.Contains(drawing, want) {
		t.Errorf("no %s in\n%s", want, drawing)
	}
	if Bars(written, []string{"a"}, []Series{{Values: values(-1)}}) != "" || Bars(written, nil, nil) != "" {
		t.Error("nothing is drawn")
	}
	if most := []*chain.Uint{&greatest}; Bars(written, []string{"a"}, []Series{{Values: most}, {Values: most}}) != "" {
		t.Error("a bar of more than there are numbers is drawn") // 2 * 10^77 is above 2^256
	}
}

// What an axis ends with is not less than what is drawn, and its middle is a whole number.
func TestRound(t *testing.T) {
	for v, want := range map[uint64]uint64{0: 2, 1: 2, 2: 2, 3: 4, 9: 10, 10: 10, 11: 20, 73: 80, 99: 100, 101: 200} {
		if got := round(chain.U64(v)); got != chain.U64(want) {
			t.Errorf("%d: %s, want %d", v, got, want)
		}
	}
}
