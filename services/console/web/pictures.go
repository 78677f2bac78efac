package web

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/chart"
	"perpkeeper/services/console/exposure"
)

// stage is one of the road from a block to a transaction in a block: how old things were there lately.
type stage struct {
	Name, What, Last, Middle, Most string
	Line                           template.HTML
}

// road is how old the newest block, the state, jobs and their transactions were.
func (p past) road() []stage {
	since := func(at func(pg.Landed) uint64) []mark {
		return p.landings(func(l pg.Landed) (uint64, bool) {
			return at(l) - min(at(l), l.DueSinceMs), l.Outcome == job.Done && l.Kind.Lane() != job.CleanupLane
		})
	}
	return []stage{
		p.stage("Head", "its newest block's age", p.marks[headAge]),
		p.stage("State", "its newest block's age", p.marks[stateAge]),
		p.stage("Job", "from due to stored", since(func(l pg.Landed) uint64 { return l.QueuedMs })),
		p.stage("Inclusion", "from due to seen in a block", since(func(l pg.Landed) uint64 { return l.SeenMs })),
	}
}

func (p past) stage(name, what string, ages []mark) stage {
	s := stage{Name: name, What: what}
	if len(ages) == 0 {
		return s
	}
	write := func(m mark) string {
		ms, _ := m.value.Uint64()
		return age(time.Duration(ms) * time.Millisecond)
	}
	sorted := slices.SortedFunc(slices.Values(ages), func(a, b mark) int { return a.value.Cmp(b.value) })
	s.Last, s.Middle, s.Most = write(ages[len(ages)-1]), write(sorted[(len(sorted)-1)/2]), write(sorted[len(sorted)-1])
	s.Line = chart.Sparkline(fmt.Sprintf("%s, %s: last %s, p50 %s, max %s", name, what, s.Last, s.Middle, s.Most),
		p.highest(ages), false)
	return s
}

// axes are those of a picture of the past.
func (p past) axes(value func(chain.Uint) string, title string, args ...any) chart.Axes {
	return chart.Axes{Title: fmt.Sprintf(title, args...), Value: value, Along: []string{
		fmt.Sprintf("%d min ago", p.minutes), strconv.Itoa(p.minutes * 2 / 3), strconv.Itoa(p.minutes / 3), "now"}}
}

// laneNames are those of [job.Lanes].
var laneNames = []string{"liquidations", "orders", "requests", "cancels"}

// executedChart shows who executed how many jobs a minute: this keeper by its own records, others by what the keeper
// saw of them on the chain. taken are those that a tier executed that is not the first.
func (c *console) executedChart(p past) (drawn template.HTML, taken uint64) {
	type part struct{ tier, lane int }
	own, all, counts := max(c.Tier.Priority, 1), uint64(0), map[part][]uint64{}
	add := func(tier int, kind job.Kind, ms, n uint64) {
		of, at := part{tier, slices.Index(job.Lanes(), kind.Lane())}, p.minute(ms)
		if counts[of] == nil {
			counts[of] = make([]uint64, p.minutes)
		}
		if at >= 0 && at < p.minutes {
			counts[of][at] += n
		}
	}
	for _, l := range p.landed {
		if l.Outcome == job.Done {
			add(own, l.Kind, l.SeenMs, 1)
		}
	}
	for of, marks := range p.marks {
		what, is := of.(status.Executions)
		for _, m := range marks {
			if n, _ := m.value.Uint64(); is && (what.Tier != own || c.Tier.Monitor) {
				add(what.Tier, what.Kind, m.ms, n)
			}
		}
	}
	var series []chart.Series
	for _, of := range slices.SortedFunc(maps.Keys(counts), func(a, b part) int {
		return cmp.Or(cmp.Compare(uint(a.tier-1), uint(b.tier-1)), a.lane-b.lane) // somebody else, 0, comes last
	}) {
		s, sum := chart.Series{Class: fmt.Sprintf("t%d k%d", min(of.tier, 4), of.lane+1)}, uint64(0)
		switch s.Name = fmt.Sprintf("tier %d, ", of.tier) + laneNames[of.lane]; {
		case of.tier == 0:
			s.Name = "others, or called off, " + laneNames[of.lane]
		case of.tier == own && !c.Tier.Monitor:
			s.Name = "this keeper, " + laneNames[of.lane]
		}
		for _, n := range counts[of] {
			s.Values, sum = append(s.Values, new(chain.U64(n))), sum+n
		}
		if all += sum; of.tier > 1 {
			taken += sum
		}
		s.Note = strconv.FormatUint(sum, 10)
		series = append(series, s)
	}
	names := make([]string, p.minutes)
	for i := range names {
		names[i] = p.now.Add(time.Duration(i+1-p.minutes) * time.Minute).UTC().Format("15:04 UTC")
	}
	return chart.Bars(p.axes(chain.Uint.String, "Jobs executed a minute: %d in all, %d of them by a tier that is not "+
		"the first", all, taken), names, series), taken
}

// gasChart shows what this keeper paid for gas beside what the node suggested.
func (p past) gasChart() template.HTML {
	gwei := func(wei chain.Uint) string { return wei.Decimal(9) + " Gwei" }
	paid := p.landings(func(l pg.Landed) (uint64, bool) { return l.GasPrice, true })
	series := []chart.Series{{Name: "paid at most", Class: "s1", Values: p.highest(paid)},
		{Name: "the node's suggestion", Class: "s2 dashed", Values: p.highest(p.marks[gasPrice])}}
	for i := range series {
		if last := series[i].Values[p.minutes-1]; last != nil {
			series[i].Note = gwei(*last)
		}
	}
	return chart.Lines(p.axes(gwei, "Price of gas: paid at most %s, the node's suggestion %s", series[0].Note,
		series[1].Note), series)
}

// fuel is how long a signer's balance lasts, in hours at what its gas took lately, and how it moves; empty where that
// is not known.
type fuel struct {
	Lasts, Slope string
	Line         template.HTML
}

func (p past) fuel(signer chain.Address) (f fuel) {
	marks := p.marks[signer]
	if len(marks) == 0 {
		return f
	}
	first, last := marks[0], marks[len(marks)-1]
	if wei, over := p.spending(signer); !wei.IsZero() {
		f.Lasts = last.value.MulDiv(chain.U64(uint64(over/time.Second)), wei).Div(chain.U64(3600)).String() + " h"
	}
	if apart := last.ms - first.ms; apart >= uint64(time.Minute.Milliseconds()) {
		moved := last.value.Int().Sub(first.value.Int())
		hourly := moved.Abs().MulDiv(chain.U64(uint64(time.Hour.Milliseconds())), chain.U64(apart)).Int()
		if moved.Sign() < 0 {
			hourly = hourly.Neg()
		}
		f.Slope = text.SignedBNB(hourly) + " an hour"
	}
	f.Line = chart.Sparkline("Balance, which lasts "+f.Lasts+" and moves by "+f.Slope, p.highest(marks), true)
	return f
}

// riskChart shows how much stands how near to liquidation, a line a market, of those with most.
func (c *console) riskChart(curves []exposure.Curve) template.HTML {
	var series []chart.Series
	for i, curve := range curves[:min(len(curves), 8)] {
		s := chart.Series{Name: c.Names.Market(curve.Market), Class: fmt.Sprintf("s%d", i+1),
			Note: dollars(curve.Sizes[10]) + " within 1 %, " + dollars(curve.Sizes[exposure.Steps]) + " within 25 %"}
		for _, usd := range curve.Sizes {
			s.Values = append(s.Values, &usd)
		}
		series = append(series, s)
	}
	return chart.Lines(chart.Axes{Title: fmt.Sprintf("Size that is due if the price moves so far, by market: %d of %d",
		len(series), len(curves)), Value: dollars, Along: []string{"due", "1 %", "4 %", "9 %", "16 %", "25 %"}}, series)
}

// dollars are USD of 30 decimals in few digits.
func dollars(usd chain.Uint) string {
	for i, unit := range []string{"T", "B", "M", "k"} {
		if power := uint64(30 + 12 - 3*i); !usd.Less(chain.Pow10(power)) {
			return "$" + usd.Div(chain.Pow10(power-2)).Decimal(2) + unit
		}
	}
	return "$" + usd.Div(perp.One).String()
}
