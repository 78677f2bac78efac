// Package chart draws the console's pictures as SVG: no script, no style, no file. Colours and sizes are the style
// sheet's, by the classes of what is drawn. Values are integers of any unit; every text is escaped. Pictures stretch to
// the place they stand in: what people read of them, texts of axes and legends, stands beside the SVG.
package chart

import (
	"fmt"
	"html/template"
	"strings"

	"perpkeeper/pkg/chain"
)

// What is drawn on, in units of its own.
const width, height = 1200, 400

// Series is a line, or the parts of bars that have one colour: with its name and what it comes to, for the legend, its
// class in the style sheet, and its values, nil where nothing is known.
type Series struct {
	Name, Note, Class string
	Values            []*chain.Uint
}

// Axes are the texts of a picture: of all of it for who cannot see it, of a value at the left, and of places below: the
// first at the beginning, the last at the end, the others evenly between.
type Axes struct {
	Title string
	Value func(chain.Uint) string
	Along []string
}

// Sparkline draws values as one small line without axes, from zero up; with fit from the lowest value up, so that a
// slope is seen that is small beside them. It is empty where no value is known.
func Sparkline(title string, values []*chain.Uint, fit bool) template.HTML {
	return drawn(func(b *strings.Builder) {
		low, high := bounds(Series{Values: values})
		if high == nil {
			return
		}
		if !fit {
			low = new(chain.Uint)
		}
		open(b, "spark", title)
		line(b, "", values, *low, *high)
		b.WriteString("</svg>")
	})
}

// Lines draws each series as a line over the same axis, which begins at zero. It is empty where no value is known, and
// where one is too great for an axis.
func Lines(a Axes, series []Series) template.HTML {
	return drawn(func(b *strings.Builder) {
		if _, most := bounds(series...); most != nil {
			top := a.begin(b, *most)
			for _, s := range series {
				line(b, s.Class, s.Values, chain.Uint{}, top)
			}
			a.end(b, series)
		}
	})
}

// Bars draws a bar for each place, the parts of the series one upon the other. names are those of the places, for who
// points at one. It is empty where there is no bar, and where one is too great for an axis.
func Bars(a Axes, names []string, series []Series) template.HTML {
	return drawn(func(b *strings.Builder) {
		totals, most := make([]chain.Uint, len(names)), chain.Uint{}
		for _, s := range series {
			for i, v := range s.Values {
				if v != nil {
					totals[i] = totals[i].Add(*v)
					most = most.Max(totals[i])
				}
			}
		}
		if most.IsZero() {
			return
		}
		top := a.begin(b, most)
		for i, name := range names {
			below, told := chain.Uint{}, ""
			b.WriteString("<g>")
			for _, s := range series {
				if v := s.Values[i]; v != nil && !v.IsZero() {
					from, to := level(below, chain.Uint{}, top), level(below.Add(*v), chain.Uint{}, top)
					fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, escaped(s.Class),
						i*width/len(names), to, width*4/5/len(names), max(from-to, 1))
					below, told = below.Add(*v), told+", "+s.Name+" "+a.Value(*v)
				}
			}
			fmt.Fprintf(b, "<title>%s</title></g>", escaped(name+": "+a.Value(below)+told))
		}
		a.end(b, series)
	})
}

// drawn is what is drawn, and nothing where the numbers on the way are too great.
func drawn(draw func(*strings.Builder)) template.HTML {
	var b strings.Builder
	if chain.Checked(func() { draw(&b) }) != nil {
		return ""
	}
	return template.HTML(b.String()) //nolint:gosec // every text in it was escaped
}

// begin is a picture up to what is drawn between its axes, whose upper end it returns.
func (a Axes) begin(b *strings.Builder, most chain.Uint) (top chain.Uint) {
	top = round(most)
	b.WriteString(`<figure class="chart"><div class="y" aria-hidden="true">`)
	for _, v := range []chain.Uint{top, top.Div(chain.U64(2)), {}} {
		fmt.Fprintf(b, "<span>%s</span>", escaped(a.Value(v)))
	}
	b.WriteString("</div>")
	open(b, "plot", a.Title)
	fmt.Fprintf(b, `<path class="grid" d="M0 0h%[1]dM0 %[2]dh%[1]dM0 %[3]dh%[1]d"/>`, width, height/2, height)
	return top
}

// end is what follows: the texts below, and the legend.
func (a Axes) end(b *strings.Builder, series []Series) {
	b.WriteString(`</svg><div class="x" aria-hidden="true">`)
	for _, text := range a.Along {
		fmt.Fprintf(b, "<span>%s</span>", escaped(text))
	}
	b.WriteString(`</div><figcaption><ul class="legend">`)
	for _, s := range series {
		fmt.Fprintf(b, `<li><i class="%s"></i>%s <b>%s</b></li>`, escaped(s.Class), escaped(s.Name), escaped(s.Note))
	}
	b.WriteString("</ul></figcaption></figure>")
}

func open(b *strings.Builder, class, title string) {
	fmt.Fprintf(b, `<svg class="%s" role="img" aria-label="%[2]s" viewBox="0 0 %[3]d %[4]d" preserveAspectRatio="none">`+
		`<title>%[2]s</title>`, class, escaped(title), width, height)
}

// line draws values as a path that begins anew after each gap, with a step to the side, so that a value alone is a dot.
func line(b *strings.Builder, class string, values []*chain.Uint, low, top chain.Uint) {
	fmt.Fprintf(b, `<path class="line %s" d="`, escaped(class))
	for i, v := range values {
		switch {
		case v == nil:
		case i == 0 || values[i-1] == nil:
			fmt.Fprintf(b, "M%d %dh1", i*width/max(len(values)-1, 1), level(*v, low, top))
		default:
			fmt.Fprintf(b, "L%d %d", i*width/(len(values)-1), level(*v, low, top))
		}
	}
	b.WriteString(`"/>`)
}

// level is how far below the upper edge a value stands between low, at the lower one, and top.
func level(v, low, top chain.Uint) int {
	if !low.Less(top) {
		return height
	}
	up, _ := v.Sub(low).MulDiv(chain.U64(height), top.Sub(low)).Uint64()
	return height - int(up)
}

// bounds are the lowest and the highest value; nil where none is known.
func bounds(series ...Series) (low, high *chain.Uint) {
	for _, s := range series {
		for _, v := range s.Values {
			if v != nil && low == nil {
				low, high = v, v
			} else if v != nil {
				low, high = new(v.Min(*low)), new(v.Max(*high))
			}
		}
	}
	return low, high
}

// round is the least even digit with zeros behind it, or one with zeros, that is not less: the end of an axis, so that
// its middle is a whole number.
func round(v chain.Uint) chain.Uint {
	v = v.Max(chain.U64(2))
	unit := chain.Pow10(uint64(len(v.Sub(chain.U64(1)).String()) - 1))
	for digit := uint64(2); ; digit += 2 {
		if top := unit.Mul(chain.U64(digit)); !top.Less(v) {
			return top
		}
	}
}

func escaped(text string) string { return template.HTMLEscapeString(text) }
