package simulator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/check"
)

// Expectation is what the result of a scenario must be: a measure of some of the jobs, and its bounds.
type Expectation struct {
	Measure Measure `toml:"measure"`
	// Kinds, From and To choose jobs: of these kinds, born in this time. None given = all.
	Kinds []job.Kind `toml:"kinds"`
	From  Span       `toml:"from"`
	To    Span       `toml:"to"`
	// Every repeats From, To and Since with this period.
	Every Span `toml:"every"`
	// Poison chooses jobs that revert whoever sends them; without it they are left out.
	Poison bool `toml:"poison"`
	// Tier is the keeper that the measures of one keeper are about.
	Tier int `toml:"tier"`
	// Since is when the measure drained begins to count.
	Since Span `toml:"since"`
	// Text is what an alert has to contain.
	Text string `toml:"text"`

	AtMost  *float64 `toml:"at_most"`
	AtLeast *float64 `toml:"at_least"`
}

// Measure is a figure of a result.
type Measure string

// measure is how a figure is computed, over all plays of a scenario.
type measure struct {
	unit string
	tier bool // it is about one keeper
	of   func(e Expectation, chosen []JobResult, plays []Play) float64
}

var measures = map[Measure]measure{
	"executed": {unit: "%",
		of: func(_ Expectation, chosen []JobResult, _ []Play) float64 { return percentOf(chosen, JobResult.Done) }},
	"executed_by": {unit: "%", tier: true, of: executedBy},
	"mean_age": {unit: "s",
		of: func(_ Expectation, chosen []JobResult, _ []Play) float64 { return meanOf(agesOf(chosen)) }},
	"p99_age": {unit: "s", of: ageOf(0.99)},
	"max_age": {unit: "s", of: ageOf(1)},
	"min_age": {unit: "s", of: ageOf(0)},
	// duplicates are mined transactions that found their job done, in per cent of the jobs.
	"duplicates": {unit: "%",
		of: func(_ Expectation, chosen []JobResult, _ []Play) float64 { return duplicatesOf(chosen) }},
	// drained is how long after Since the last of the jobs was executed; infinite where one never was.
	"drained": {unit: "s", of: drained},
	// sent counts the jobs for which the keeper broadcast anything; without a tier, for which anybody did.
	"sent": {unit: "jobs", of: sent},
	// failures counts the keeper's attempts that ended as failures.
	"failures": {unit: "attempts", tier: true, of: failures},
	// lost_races counts the keeper's attempts that ended without a failure because somebody else was first, sent or
	// not.
	"lost_races": {unit: "attempts", tier: true, of: lostRaces},
	// silent are the jobs that nobody executed and nobody reported.
	"silent": {unit: "jobs", of: func(_ Expectation, chosen []JobResult, _ []Play) float64 {
		return float64(count(chosen, func(f JobResult) bool { return !f.Done() && !f.Reported }))
	}},
	// alerts counts the plays in which a keeper logged the text in a warning, in the time from From to To.
	"alerts": {unit: "% of plays", of: alerts},
}

func (e Expectation) validate(keepers int) error {
	m, known := measures[e.Measure]
	if !known {
		return fmt.Errorf("measure: %q is none of %s", e.Measure, names(measures))
	}
	var problems []error
	add := func(bad bool, format string, args ...any) {
		problems = append(problems, check.Refuse(bad, format, args...))
	}
	add(e.AtMost == nil && e.AtLeast == nil, "%s: name a bound, at_most or at_least", e.Measure)
	add(m.tier && e.Tier == 0, "%s: it is about one keeper; name its tier", e.Measure)
	add(e.Tier < 0 || e.Tier > keepers, "tier: %d is not between 1 and %d", e.Tier, keepers)
	add(e.To != 0 && e.To <= e.From, "to: %s is not after from (%s)", time.Duration(e.To), time.Duration(e.From))
	add(e.Every != 0 && e.Every < e.To-e.From, "every: a period of %s is shorter than what it repeats",
		time.Duration(e.Every))
	add(e.Measure == "alerts" && e.Text == "", "alerts: name the text they must contain")
	for _, k := range e.Kinds {
		add(!slices.Contains(kinds, k), "kinds: %q is none of %v", k, kinds)
	}
	return errors.Join(problems...)
}

// chooses reports whether an expectation is about a job.
func (e Expectation) chooses(f JobResult) bool {
	return f.Poison == e.Poison && f.Born >= time.Duration(e.From) &&
		(e.To == 0 || f.Born-e.shift(f) < time.Duration(e.To)) &&
		(len(e.Kinds) == 0 || slices.Contains(e.Kinds, f.Kind))
}

// shift is by how much later the job's period begins than the first.
func (e Expectation) shift(f JobResult) time.Duration {
	if e.Every == 0 {
		return 0
	}
	return (f.Born - time.Duration(e.From)).Truncate(time.Duration(e.Every))
}

// Miss reports how a result falls short of the expectation, in one line; nothing where it does not.
func (e Expectation) Miss(plays []Play) string {
	got := e.value(plays)
	unit := measures[e.Measure].unit
	switch {
	case e.AtMost != nil && !(got <= *e.AtMost):
		return fmt.Sprintf("%s is %s, expected at most %s", e.about(), figure(got, unit), figure(*e.AtMost, unit))
	case e.AtLeast != nil && !(got >= *e.AtLeast):
		return fmt.Sprintf("%s is %s, expected at least %s", e.about(), figure(got, unit), figure(*e.AtLeast, unit))
	}
	return ""
}

// Says returns what was measured and what was expected, in one line.
func (e Expectation) Says(plays []Play) string {
	unit := measures[e.Measure].unit
	var bounds []string
	if e.AtLeast != nil {
		bounds = append(bounds, "at least "+figure(*e.AtLeast, unit))
	}
	if e.AtMost != nil {
		bounds = append(bounds, "at most "+figure(*e.AtMost, unit))
	}
	return fmt.Sprintf("%s is %s (%s)", e.about(), figure(e.value(plays), unit), strings.Join(bounds, ", "))
}

func (e Expectation) value(plays []Play) float64 {
	return measures[e.Measure].of(e, choose(plays, e.chooses), plays)
}

// about names what is measured of which jobs.
func (e Expectation) about() string {
	var b strings.Builder
	b.WriteString(string(e.Measure))
	if e.Tier != 0 {
		fmt.Fprintf(&b, " of tier %d", e.Tier)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " with %q", e.Text)
	}
	if len(e.Kinds) > 0 {
		fmt.Fprintf(&b, " over %v", e.Kinds)
	}
	if e.To != 0 {
		fmt.Fprintf(&b, " born from %s to %s", time.Duration(e.From), time.Duration(e.To))
	}
	return b.String()
}

func figure(v float64, unit string) string {
	text := fmt.Sprintf("%.2f", v)
	if v == math.Trunc(v) && !math.IsInf(v, 0) {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

func choose(plays []Play, by func(JobResult) bool) (chosen []JobResult) {
	for _, p := range plays {
		for _, f := range p.Jobs {
			if by(f) {
				chosen = append(chosen, f)
			}
		}
	}
	return chosen
}

func count(results []JobResult, by func(JobResult) bool) (n int) {
	for _, f := range results {
		if by(f) {
			n++
		}
	}
	return n
}

// percentOf is NaN of nothing, which meets no bound: an expectation about no job is a mistake.
func percentOf(results []JobResult, by func(JobResult) bool) float64 {
	return 100 * float64(count(results, by)) / float64(len(results))
}

func agesOf(results []JobResult) (seconds []float64) {
	for _, f := range results {
		if f.Done() {
			seconds = append(seconds, f.Age.Seconds())
		}
	}
	slices.Sort(seconds)
	return seconds
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// quantile is the nearest rank of sorted values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func ageOf(q float64) func(Expectation, []JobResult, []Play) float64 {
	return func(_ Expectation, chosen []JobResult, _ []Play) float64 { return quantile(agesOf(chosen), q) }
}

func executedBy(e Expectation, chosen []JobResult, _ []Play) float64 {
	done := choose([]Play{{Jobs: chosen}}, JobResult.Done)
	return percentOf(done, func(f JobResult) bool { return f.Executor == e.Tier })
}

func duplicatesOf(results []JobResult) float64 {
	losers := 0
	for _, f := range results {
		losers += f.Losers
	}
	return 100 * float64(losers) / float64(len(results))
}

func drained(e Expectation, chosen []JobResult, _ []Play) float64 {
	last := 0.0
	for _, f := range chosen {
		if !f.Done() {
			return math.Inf(1)
		}
		last = max(last, (f.Born + f.Age - e.shift(f) - time.Duration(e.Since)).Seconds())
	}
	return last
}

func sent(e Expectation, chosen []JobResult, _ []Play) float64 {
	return float64(count(chosen, func(f JobResult) bool {
		if e.Tier != 0 {
			return f.Sent[e.Tier] > 0
		}
		return slices.Max(f.Sent) > 0
	}))
}

func attempts(tier int, chosen []JobResult, by func(job.Outcome) bool) float64 {
	n := 0
	for _, f := range chosen {
		for _, o := range f.Outcomes[tier] {
			if by(o) {
				n++
			}
		}
	}
	return float64(n)
}

func failures(e Expectation, chosen []JobResult, _ []Play) float64 {
	return attempts(e.Tier, chosen, func(o job.Outcome) bool { return o.Failure() || o == job.Foreign })
}

func lostRaces(e Expectation, chosen []JobResult, _ []Play) float64 {
	return attempts(e.Tier, chosen, func(o job.Outcome) bool { return o == job.LostRace || o == job.SkippedDone })
}

func alerts(e Expectation, _ []JobResult, plays []Play) float64 {
	matching := 0
	for _, p := range plays {
		if slices.ContainsFunc(p.Alerts, func(a Alert) bool {
			return (e.Tier == 0 || a.Keeper == e.Tier) && strings.Contains(a.Text, e.Text) &&
				a.At >= time.Duration(e.From) && (e.To == 0 || a.At < time.Duration(e.To))
		}) {
			matching++
		}
	}
	return 100 * float64(matching) / float64(len(plays))
}
