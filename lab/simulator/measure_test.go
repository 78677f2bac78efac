package simulator

import (
	"math"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/job"
)

// results of three jobs: one by the Master in time, one by Backup-1 with a loser, one that nobody executed and that was
// reported.
func threeFates() []Play {
	none := make([][]job.Outcome, 3)
	return []Play{{Jobs: []JobResult{
		{Kind: job.Order, Born: time.Second, Executor: 1, Age: time.Second, Gas: 100, Sent: []int{0, 1, 0},
			Outcomes: none},
		{
			Kind: job.Liquidation, Born: 2 * time.Second, Executor: 2, Age: 31 * time.Second, Gas: 100, LostGas: 54,
			Losers: 1, Sent: []int{0, 1, 1},
			Outcomes: [][]job.Outcome{nil, {job.LostRace}, {job.Done}},
		},
		{Kind: job.Order, Born: 3 * time.Second, Reported: true, Sent: []int{0, 0, 0},
			Outcomes: [][]job.Outcome{nil, {job.Expired}, nil}},
		{Kind: job.Order, Born: 3 * time.Second, Poison: true, Sent: []int{0, 1, 1}, Outcomes: none},
	}, Alerts: []Alert{{At: 5 * time.Second, Keeper: 1, Text: "the state is 4 s behind"}}}}
}

func TestMeasures(t *testing.T) {
	for name, c := range map[string]struct {
		e    Expectation
		want float64
	}{
		"executed":           {Expectation{Measure: "executed"}, 200. / 3},
		"executed of a kind": {Expectation{Measure: "executed", Kinds: []job.Kind{job.Order}}, 50},
		"executed of a time": {Expectation{Measure: "executed", From: Span(time.Second), To: Span(3 * time.Second)},
			100},
		"executed of every other second": {Expectation{Measure: "executed", From: Span(time.Second),
			To: Span(2 * time.Second), Every: Span(2 * time.Second)}, 50},
		"executed by Backup-1": {Expectation{Measure: "executed_by", Tier: 2}, 50},
		"mean age":             {Expectation{Measure: "mean_age"}, 16},
		"least age":            {Expectation{Measure: "min_age"}, 1},
		"greatest age":         {Expectation{Measure: "max_age"}, 31},
		"p99 of ages":          {Expectation{Measure: "p99_age"}, 31},
		"duplicates":           {Expectation{Measure: "duplicates"}, 100. / 3},
		"drained": {Expectation{Measure: "drained", To: Span(3 * time.Second),
			Since: Span(3 * time.Second)}, 30},
		"drained in every second": {Expectation{Measure: "drained", Kinds: []job.Kind{job.Liquidation},
			Since: Span(time.Second / 2), Every: Span(time.Second)}, 30.5},
		"never drained":          {Expectation{Measure: "drained"}, math.Inf(1)},
		"sent by anybody":        {Expectation{Measure: "sent"}, 2},
		"sent by Backup-1":       {Expectation{Measure: "sent", Tier: 2}, 1},
		"failures":               {Expectation{Measure: "failures", Tier: 1}, 1},
		"lost races":             {Expectation{Measure: "lost_races", Tier: 1}, 1},
		"silent":                 {Expectation{Measure: "silent"}, 0},
		"alerts":                 {Expectation{Measure: "alerts", Tier: 1, Text: "behind"}, 100},
		"alerts of another":      {Expectation{Measure: "alerts", Tier: 2, Text: "behind"}, 0},
		"alerts of another time": {Expectation{Measure: "alerts", Text: "behind", From: Span(6 * time.Second)}, 0},
	} {
		if got := c.e.value(threeFates()); math.Abs(got-c.want) > 1e-9 && got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	if got := savingOf(threeFates()[0].Jobs, 3); math.Abs(got-100*(1-254./(100*1.48+100*2.08))) > 1e-9 {
		t.Errorf("gas saved: %g", got)
	}
}

func TestMiss(t *testing.T) {
	bound := func(v float64) *float64 { return &v }
	for want, e := range map[string]Expectation{
		"": {Measure: "executed", AtLeast: bound(60)},
		"executed is 66.67 %, expected at least 67 %": {Measure: "executed",
			AtLeast: bound(67)},
		"max_age over [liquidation] born from 1s to 9s is 31 s, expected at most 30 s": {Measure: "max_age",
			Kinds: []job.Kind{job.Liquidation}, From: Span(time.Second), To: Span(9 * time.Second), AtMost: bound(30)},
		"alerts of tier 2 with \"behind\" is 0 % of plays, expected at least 100 % of plays": {Measure: "alerts",
			Tier: 2, Text: "behind", AtLeast: bound(100)},
		// Of no job nothing can be said: an expectation about none is not met.
		"mean_age over [deposit] is NaN s, expected at most 1 s": {Measure: "mean_age", Kinds: []job.Kind{job.Deposit},
			AtMost: bound(1)},
	} {
		if got := e.Miss(threeFates()); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	e := Expectation{Measure: "executed", AtLeast: bound(60), AtMost: bound(70)}
	if got, want := e.Says(threeFates()), "executed is 66.67 % (at least 60 %, at most 70 %)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestResultFailsWhereAPromiseIsBroken(t *testing.T) {
	plays := threeFates()
	plays[0].Seed, plays[0].Broken = 7, []string{"order 1 was executed twice"}
	r := Result{Scenario: Scenario{Keepers: 2}, Plays: plays}
	if got := r.Misses(); len(got) != 1 || got[0] != "seed 7: order 1 was executed twice" {
		t.Errorf("%q", got)
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil || !strings.Contains(out.String(), "NOT as expected:\n  seed 7") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
