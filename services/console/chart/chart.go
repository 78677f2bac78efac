// Package chart draws the console's pictures as SVG: no script, no style, no file. Colours and sizes are the style
// sheet's, by the classes of what is drawn. Values are integers of any unit; every text is escaped.
//
// A picture stretches to the place it stands in, so that it is as sharp on a telephone as on a wall. Nothing that
// people read is in it but its titles: the texts of axes and legends stand beside it.
package chart

import (
	"fmt"
	"html/template"
	"strings"

	"perpkeeper/pkg/perp"
)

// What a picture is drawn on, in units of its own.
const (
	width  = 1200
	height = 400
)

// Point is one value of a row of them, or a gap where nothing is known.
type Point struct {
	Value perp.Uint
	Known bool
}

// At is a point of a known value.
func At(v perp.Uint) Point { return Point{v, true} }

// Series is a line, or the parts of bars that have one colour.
type Series struct {
	Name   string // in the legend
	Note   string // beside the name: what it comes to
	Class  string // in the style sheet
	Points []Point
}

// Axes are the texts at a picture's sides, and its description for who cannot see it.
type Axes struct {
	Title string
	// Value writes a value for the axis at the left.
	Value func(perp.Uint) string
	// Along are the texts below, the first at the beginning, the last at the end, the others evenly between.
	Along []string
}

// Sparkline draws points as one small line without axes, from zero up. With fit it is drawn from the lowest value to
// the highest, so that a slope is seen that is small beside them. It is empty where no point is known.
func Sparkline(title string, points []Point, fit bool) template.HTML {
	low, high, known := bounds(points)
	if !known {
		return ""
	}
	if !fit {
		low = perp.Uint{}
	}
	moved := make([]Point, len(points))
	for i, p := range points {
		if p.Known {
			moved[i] = At(p.Value.Sub(low))
		}
	}
	var b strings.Builder
	open(&b, "spark", title)
	line(&b, "", moved, high.Sub(low))
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // every text in it was escaped
}

// Lines draws each series as a line over the same axis, which begins at zero. It is empty where no point is known.
func Lines(a Axes, series []Series) template.HTML {
	most, known := perp.Uint{}, false
	for _, s := range series {
		_, high, has := bounds(s.Points)
		most, known = most.Max(high), known || has
	}
	if !known {
		return ""
	}
	return a.figure(series, round(most), func(b *strings.Builder, top perp.Uint) {
		for _, s := range series {
			line(b, s.Class, s.Points, top)
		}
	})
}

// Bars draws a bar for each place of the series, their parts one upon the other. names are those of the places, for who
// points at one. It is empty where no point is known, and where the parts of a bar are more than 256 bits.
func Bars(a Axes, names []string, series []Series) template.HTML {
	totals, most := make([]perp.Uint, len(names)), perp.Uint{}
	known := false
	err := perp.Checked(func() {
		for _, s := range series {
			for i, p := range s.Points {
				totals[i], known = totals[i].Add(p.Value), known || p.Known
				most = most.Max(totals[i])
			}
		}
	})
	if err != nil || !known {
		return ""
	}
	return a.figure(series, round(most), func(b *strings.Builder, top perp.Uint) {
		for i, name := range names {
			if totals[i].IsZero() {
				continue
			}
			x, end := i*width/len(names), (i+1)*width/len(names)
			var parts, told strings.Builder
			below := perp.Uint{}
			for _, s := range series {
				v := s.Points[i].Value
				if v.IsZero() {
					continue
				}
				from, to := level(below, top), level(below.Add(v), top)
				below = below.Add(v)
				fmt.Fprintf(&parts, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, escaped(s.Class), x,
					to, max((end-x)*4/5, 1), max(from-to, 1))
				fmt.Fprintf(&told, ", %s %s", s.Name, a.Value(v))
			}
			fmt.Fprintf(b, "<g><title>%s: %s%s</title>%s</g>", escaped(name), escaped(a.Value(totals[i])),
				escaped(told.String()), parts.String())
		}
	})
}

// figure is a picture with its axes and the legend of its series.
func (a Axes) figure(series []Series, top perp.Uint, draw func(b *strings.Builder, top perp.Uint)) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="chart"><div class="y" aria-hidden="true"><span>%s</span><span>%s</span><span>%s</span></div>`,
		escaped(a.Value(top)), escaped(a.Value(top.Div(perp.U64(2)))), escaped(a.Value(perp.Uint{})))
	open(&b, "plot", a.Title)
	fmt.Fprintf(&b, `<path class="grid" d="M0 0h%[1]dM0 %[2]dh%[1]dM0 %[3]dh%[1]d"/>`, width, height/2, height)
	draw(&b, top)
	b.WriteString(`</svg><div class="x" aria-hidden="true">`)
	for _, text := range a.Along {
		fmt.Fprintf(&b, "<span>%s</span>", escaped(text))
	}
	b.WriteString(`</div><figcaption><ul class="legend">`)
	for _, s := range series {
		fmt.Fprintf(&b, `<li><i class="%s"></i>%s <b>%s</b></li>`, escaped(s.Class), escaped(s.Name), escaped(s.Note))
	}
	b.WriteString("</ul></figcaption></figure>")
	return template.HTML(b.String()) //nolint:gosec // every text in it was escaped
}

func open(b *strings.Builder, class, title string) {
	fmt.Fprintf(b, `<svg class="%s" role="img" aria-label="%[2]s" viewBox="0 0 %[3]d %[4]d" preserveAspectRatio="none">`+
		`<title>%[2]s</title>`, class, escaped(title), width, height)
}

// line draws points as a path that begins anew after each gap. A point alone is a dot.
func line(b *strings.Builder, class string, points []Point, top perp.Uint) {
	fmt.Fprintf(b, `<path class="line %s" d="`, escaped(class))
	drawn := false
	for i, p := range points {
		if !p.Known {
			drawn = false
			continue
		}
		command := 'L'
		if !drawn {
			command = 'M'
		}
		fmt.Fprintf(b, "%c%d %d", command, i*width/max(len(points)-1, 1), level(p.Value, top))
		if alone := !drawn && (i+1 == len(points) || !points[i+1].Known); alone {
			b.WriteString("h1")
		}
		drawn = true
	}
	b.WriteString(`"/>`)
}

// level is how far below the upper edge a value stands, of which top is at that edge.
func level(v, top perp.Uint) int {
	if top.IsZero() {
		return height
	}
	up, _ := v.Min(top).MulDiv(perp.U64(height), top).Uint64()
	return height - int(up)
}

func bounds(points []Point) (low, high perp.Uint, known bool) {
	for _, p := range points {
		if !p.Known {
			continue
		}
		if !known || p.Value.Less(low) {
			low = p.Value
		}
		high, known = high.Max(p.Value), true
	}
	return low, high, known
}

// round is the least number of one even digit and zeros, or of a one and zeros, that is not less: what an axis ends
// with, so that its middle is a whole number. What has no such number within 256 bits stays as it is.
func round(v perp.Uint) (top perp.Uint) {
	unit := perp.U64(1)
	err := perp.Checked(func() {
		for unit.Mul(perp.U64(10)).Less(v) {
			unit = unit.Mul(perp.U64(10))
		}
		for digit := uint64(2); ; digit += 2 {
			if top = unit.Mul(perp.U64(digit)); !top.Less(v) {
				return
			}
		}
	})
	if err != nil {
		return v
	}
	return top
}

func escaped(text string) string { return template.HTMLEscapeString(text) }
