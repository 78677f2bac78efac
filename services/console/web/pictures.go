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
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/chart"
	"perpkeeper/services/console/exposure"
)

// stage is one of the road from a block to a transaction in a block: how old things were there in the last hour.
type stage struct {
	Name, What         string
	Last, Middle, Most string
	Line               template.HTML
}

// road is how old the newest block, the state, jobs and their transactions were.
func (c *console) road() (stages []stage) {
	past := c.hour.past(c.Now())
	for _, s := range []struct {
		name, what string
		of         func(glance) chart.Point
	}{
		{"Head", "its newest block's age", func(g glance) chart.Point { return g.head }},
		{"State", "its newest block's age", func(g glance) chart.Point { return g.state }},
	} {
		var ages []uint64
		for _, g := range past.looks {
			if p := s.of(g); p.Known {
				ms, _ := p.Value.Uint64()
				ages = append(ages, ms)
			}
		}
		stages = append(stages, stageOf(s.name, s.what, ages, past.track(s.of)))
	}
	for _, s := range []struct {
		name, what string
		of         func(pg.Landed) uint64
	}{
		{"Job", "from due to stored", func(l pg.Landed) uint64 { return l.QueuedMs }},
		{"Inclusion", "from due to seen in a block", func(l pg.Landed) uint64 { return l.SeenMs }},
	} {
		of := func(l pg.Landed) (uint64, bool) {
			return s.of(l) - min(s.of(l), l.BirthMs), done(l) && l.Kind.Lane() != job.CleanupLane
		}
		var ages []uint64
		for _, l := range slices.Backward(past.landed) {
			if ms, ok := of(l); ok {
				ages = append(ages, ms)
			}
		}
		stages = append(stages, stageOf(s.name, s.what, ages, past.byMinute(of, slices.Max[[]uint64])))
	}
	return stages
}

func done(l pg.Landed) bool { return l.Outcome == job.Done }

// stageOf writes ages (ms), the newest last.
func stageOf(name, what string, ages []uint64, points []chart.Point) stage {
	s := stage{Name: name, What: what}
	if len(ages) == 0 {
		return s
	}
	write := func(ms uint64) string { return age(time.Duration(ms) * time.Millisecond) }
	s.Last, s.Middle, s.Most = write(ages[len(ages)-1]), write(median(ages)), write(slices.Max(ages))
	s.Line = chart.Sparkline(fmt.Sprintf("%s, %s: last %s, p50 %s, max %s", name, what, s.Last, s.Middle, s.Most), points, false)
	return s
}

// laneNames are the lanes as the legend has them.
var laneNames = map[job.Lane]string{job.LiquidationLane: "liquidations", job.OrderLane: "orders",
	job.MaintenanceLane: "requests", job.CleanupLane: "cancels"}

// executedChart shows who executed how many jobs a minute: this keeper by its own records, others by what the keeper
// saw of them on the chain. taken are those that a tier executed that is not the first.
func (c *console) executedChart() (drawn template.HTML, taken uint64) {
	past, own := c.hour.past(c.Now()), max(c.Tier.Priority, 1)
	type part struct {
		tier int
		lane job.Lane
	}
	counts, totals := map[part][]uint64{}, map[part]uint64{}
	add := func(tier int, kind job.Kind, ms, n uint64) {
		at, p := past.minute(ms), part{tier, kind.Lane()}
		if at < 0 || at >= past.minutes || n == 0 {
			return
		}
		if counts[p] == nil {
			counts[p] = make([]uint64, past.minutes)
		}
		counts[p][at] += n
		totals[p] += n
		if tier > 1 {
			taken += n
		}
	}
	for _, l := range past.landed {
		if done(l) {
			add(own, l.Kind, l.SeenMs, 1)
		}
	}
	for _, g := range past.looks {
		for what, n := range g.executed {
			if what.Tier != own || c.Tier.Monitor {
				add(what.Tier, what.Kind, uint64(g.at.UnixMilli()), n)
			}
		}
	}
	lanes := job.Lanes()
	parts := slices.SortedFunc(maps.Keys(counts), func(a, b part) int {
		return cmp.Or(cmp.Compare(uint(a.tier-1), uint(b.tier-1)), // somebody else, 0, comes last
			slices.Index(lanes, a.lane)-slices.Index(lanes, b.lane))
	})
	var series []chart.Series
	all := uint64(0)
	for _, p := range parts {
		s := chart.Series{Name: c.tierName(p.tier) + ", " + laneNames[p.lane], Note: strconv.FormatUint(totals[p], 10),
			Class: fmt.Sprintf("t%d k%d", min(p.tier, 4), slices.Index(lanes, p.lane)+1)}
		for _, n := range counts[p] {
			s.Points = append(s.Points, chart.At(perp.U64(n)))
		}
		series = append(series, s)
		all += totals[p]
	}
	names := make([]string, past.minutes)
	for i := range names {
		names[i] = past.now.Add(time.Duration(i+1-past.minutes)*time.Minute).UTC().Format("15:04") + " UTC"
	}
	return chart.Bars(chart.Axes{Value: perp.Uint.String, Along: past.along(), Title: fmt.Sprintf("Jobs executed a minute: "+
		"%d in all, %d of them by a tier that is not the first", all, taken)}, names, series), taken
}

func (c *console) tierName(tier int) string {
	switch {
	case tier == 0:
		return "others, or called off"
	case !c.Tier.Enabled:
		return "this keeper"
	case tier == c.Tier.Priority && !c.Tier.Monitor:
		return fmt.Sprintf("tier %d, this keeper", tier)
	}
	return fmt.Sprintf("tier %d", tier)
}

// riskChart shows how much stands how near to liquidation, a line a market.
func (c *console) riskChart(curves []exposure.Curve) template.HTML {
	var series []chart.Series
	for i, curve := range curves {
		s := chart.Series{Name: c.marketName(curve.Market), Class: fmt.Sprintf("s%d", i+1),
			Note: dollars(curve.Sizes[exposure.Steps])}
		for _, usd := range curve.Sizes {
			s.Points = append(s.Points, chart.At(usd))
		}
		series = append(series, s)
	}
	return chart.Lines(chart.Axes{Title: fmt.Sprintf("Size that is due if the price moves so far, by market; within 25 %%, "+
		"%d lines", len(series)), Value: dollars, Along: []string{"due", "1 %", "4 %", "9 %", "16 %", "25 %"}}, series)
}

// marketName is what people call a market; the zero address stands for all that have no line of their own.
func (c *console) marketName(market chain.Address) string {
	if market.IsZero() {
		return "all others"
	}
	return c.Names.Market(market)
}

// dollars are USD of 30 decimals in a few digits.
func dollars(usd perp.Uint) string {
	whole := usd.Div(perp.One)
	for _, unit := range []struct {
		power uint64
		name  string
	}{{12, "T"}, {9, "B"}, {6, "M"}, {3, "k"}} {
		if size := perp.Pow10(unit.power); !whole.Less(size) {
			return "$" + whole.Div(perp.Pow10(unit.power-2)).Decimal(2) + unit.name
		}
	}
	return "$" + whole.String()
}

// fuel is how long a signer's balance lasts.
type fuel struct {
	Lasts, Slope string // empty where they are not known
	Line         template.HTML
}

// fuelOf is a signer's balance over the hour, and its hours at what the signer's gas took in that time.
func (c *console) fuelOf(signer chain.Address) (f fuel) {
	past := c.hour.past(c.Now())
	looks := slices.DeleteFunc(past.looks, func(g glance) bool { _, known := g.balances[signer]; return !known })
	if len(looks) == 0 {
		return f
	}
	first, last := looks[0], looks[len(looks)-1]
	told := "Balance"
	if wei, over := past.spending(signer); !wei.IsZero() {
		hours := last.balances[signer].MulDiv(perp.U64(uint64(over/time.Second)), wei).Div(perp.U64(3600))
		f.Lasts = hours.String() + " h"
		told += ", which lasts " + f.Lasts
	}
	if apart := last.at.Sub(first.at); apart >= time.Minute {
		moved := last.balances[signer].Int().Sub(first.balances[signer].Int())
		hourly := perp.U64(uint64(time.Hour/time.Second)).MulDiv(moved.Abs(), perp.U64(uint64(apart/time.Second))).Int()
		if moved.Sign() < 0 {
			hourly = hourly.Neg()
		}
		f.Slope = text.SignedBNB(hourly) + " an hour"
		told += ", " + f.Slope
	}
	past.looks = looks
	f.Line = chart.Sparkline(told, past.track(func(g glance) chart.Point { return chart.At(g.balances[signer]) }), true)
	return f
}

// gasChart shows what this keeper paid for gas beside what the node suggested.
func (c *console) gasChart() template.HTML {
	past := c.hour.past(c.Now())
	suggested := make([]chart.Point, past.minutes)
	paid := past.byMinute(func(l pg.Landed) (uint64, bool) { return l.GasPrice, true }, median)
	for _, g := range past.looks {
		if at := past.minute(uint64(g.at.UnixMilli())); at >= 0 && at < past.minutes && g.suggested.Known {
			suggested[at] = g.suggested
		}
	}
	gwei := func(wei perp.Uint) string { return wei.Decimal(9) + " Gwei" }
	note := func(points []chart.Point) string {
		if last := points[past.minutes-1]; last.Known {
			return gwei(last.Value)
		}
		return "not known now"
	}
	return chart.Lines(chart.Axes{Title: fmt.Sprintf("Price of gas: paid %s, suggested by the node %s", note(paid),
		note(suggested)), Value: gwei, Along: past.along()}, []chart.Series{
		{Name: "paid, middle of each minute", Note: note(paid), Class: "s1", Points: paid},
		{Name: "the node's suggestion", Note: note(suggested), Class: "s2 dashed", Points: suggested},
	})
}
