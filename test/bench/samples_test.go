package bench

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// series is what is sampled: of a process, a topic, a table, or the work done.
type series struct{ kind, name, measure string }

// sample is a value at a time since the beginning, of the chain: blocks at BSC's block time.
type sample struct {
	at    time.Duration
	value float64
}

// samples are all that a soak has taken.
type samples struct {
	at  time.Duration // of those being taken
	all map[series][]sample
	// bounded says that topics and the archive keep what they keep for so short a time that they are full.
	bounded bool
}

func newSamples() *samples { return &samples{all: map[series][]sample{}} }

func (s *samples) begin(at time.Duration) { s.at = at }

func (s *samples) add(kind, name, measure string, value float64) {
	what := series{kind, name, measure}
	s.all[what] = append(s.all[what], sample{s.at, value})
}

// landed says what part of what was asked for was done, asked being the trades begun per second.
func (s *samples) landed(asked float64) string {
	of := func(name, measure string) float64 { return rise(s.all[series{"work", name, measure}]) }
	clock, blocks := of("clock", "seconds"), of("chain", "head")
	return fmt.Sprintf("%.0f blocks in %.0f s (%.1f a second); %.0f jobs ended, %.1f a second and %.2f a block, of "+
		"%.0f trades a second that were asked for; %.0f events, %.1f a block",
		blocks, clock, blocks/clock, of("jobs", "ended"), of("jobs", "ended")/clock, of("jobs", "ended")/blocks, asked,
		of("events", "applied"), of("events", "applied")/blocks)
}

func (s *samples) sorted() []series {
	return slices.SortedFunc(maps.Keys(s.all), func(a, b series) int {
		return strings.Compare(a.kind+a.name+a.measure, b.kind+b.name+b.measure)
	})
}

// rows are all samples, for a file, but for those that are as the one before and the one after.
func (s *samples) rows() [][]string {
	rows := [][]string{{"seconds", "kind", "name", "measure", "value"}}
	for _, what := range s.sorted() {
		of := s.all[what]
		for i, one := range of {
			if 0 < i && i < len(of)-1 && of[i-1].value == one.value && one.value == of[i+1].value {
				continue
			}
			rows = append(rows, []string{fmt.Sprintf("%.0f", one.at.Seconds()), what.kind, what.name, what.measure,
				strconv.FormatFloat(one.value, 'f', -1, 64)})
		}
	}
	return rows
}

// verdict is what is said of a series.
type verdict struct {
	what series
	bad  bool
	text string
}

// live are the tables of what has not ended, or not for long.
const live = `keeper\.(tx_intent|signed_tx|tx_receipt|signer_nonce_allocation)`

// kept are the tables that a setting, or a decision, lets grow for longer than a soak takes, and which.
var kept = []struct{ table, why string }{
	{live, "retained 48h"},
	{`keeper\.(archive.*|pnl_day)`, "retention.keep, 90 days"},
	{`keeper\.(commission|wallet_entry|delayed_job|signer_event|preflight_check)`, "ledgers and done work"},
	{`state_g\d+\.(position|perp_order|request|transaction|settlement|keeper_fee|bad_debt)`,
		"the state keeps what has closed (adr 0035)"},
}

// keptBy says what lets a series grow; nothing for what has to stay as it is.
func (what series) keptBy(bounded bool) (why string) {
	switch {
	case what.kind == "topic" && !bounded:
		return "the topic's retention"
	case what.kind == "table":
		for _, k := range kept {
			if bounded && k.table == live {
				continue
			}
			if regexp.MustCompile("^" + k.table + "$").MatchString(what.name) {
				return k.why
			}
		}
	}
	return ""
}

const (
	// mostGrowth is by which share of its value what has to stay as it is may be higher at the end of a soak than after
	// its warm-up, by the line that fits best; and mostFaster by which what is kept may grow faster in the second half.
	mostGrowth, mostFaster = 0.25, 0.5
)

// slackOf is how much of a measure is no growth, however little there was.
func slackOf(measure string) float64 {
	if strings.HasSuffix(measure, "bytes") {
		return 8 << 20
	}
	return 10
}

// judge says of each series whether it grows: from the end of the warm-up on, by the slope of its line.
func (s *samples) judge(warm time.Duration) (verdicts []verdict) {
	for _, what := range s.sorted() {
		of := slices.DeleteFunc(slices.Clone(s.all[what]), func(one sample) bool { return one.at < warm })
		if what.kind == "work" || len(of) < 4 {
			continue
		}
		v := verdict{what: what}
		name := what.kind + " " + what.name + " " + what.measure
		if why := what.keptBy(s.bounded); why != "" {
			half := len(of) / 2
			first, second := rise(of[:half+1]), rise(of[half:])
			v.bad = second > first*(1+mostFaster)+slackOf(what.measure)
			v.text = fmt.Sprintf("%s: %.0f more in the first half, %.0f in the second (kept: %s)", name, first, second,
				why)
		} else {
			began, grown := line(of)
			v.bad = grown > began*mostGrowth+slackOf(what.measure)
			v.text = fmt.Sprintf("%s: %.0f after the warm-up, %+.0f since", name, began, grown)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// rise is what a series has risen by.
func rise(of []sample) float64 { return of[len(of)-1].value - of[0].value }

// line is the line that fits best (least squares): where it begins, and by how much it rises to its end.
func line(of []sample) (began, grown float64) {
	var at, value float64
	for _, one := range of {
		at, value = at+one.at.Seconds()/float64(len(of)), value+one.value/float64(len(of))
	}
	var both, square float64
	for _, one := range of {
		off := one.at.Seconds() - at
		both, square = both+off*(one.value-value), square+off*off
	}
	slope := both / square
	began = value + slope*(of[0].at.Seconds()-at)
	return began, slope * (of[len(of)-1].at - of[0].at).Seconds()
}

// topicSizes are the sizes of the topics in a folder of the embedded broker.
func topicSizes(folder string) (map[string]int64, error) {
	sizes := map[string]int64{}
	topic := regexp.MustCompile(`perp\.\d+\.(\w+)\.v1`)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		name := topic.FindStringSubmatch(path)
		if err != nil || d.IsDir() || name == nil {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			sizes[name[1]] += info.Size()
		}
		return ignoreGone(err)
	})
	return sizes, err
}

// ignoreGone forgives files that were deleted while they were looked at.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// The judge calls growth what grows, and nothing else: the warm-up, noise, and what a setting keeps.
func TestSoakJudge(t *testing.T) {
	const mb = 1 << 20
	noise := func(n int) float64 { return float64(n*7919%13) * mb }
	resident := series{"process", "planner", "resident_bytes"}
	for name, c := range map[string]struct {
		what  series
		value func(n float64) float64
		bad   bool
	}{
		"flat":     {resident, func(float64) float64 { return 100 * mb }, false},
		"warms up": {resident, func(n float64) float64 { return min(n, 12) * 20 * mb }, false},
		"leaks":    {resident, func(n float64) float64 { return 100*mb + n*mb }, true},
		"goroutines leak": {series{"process", "planner", "goroutines"},
			func(n float64) float64 { return 40 + n/2 }, true},
		"kept": {series{"table", "keeper.tx_intent", "bytes"}, func(n float64) float64 { return n * 5 * mb }, false},
		"kept, faster": {series{"table", "keeper.signed_tx", "bytes"},
			func(n float64) float64 { return n * n * mb }, true},
		"not kept": {series{"table", "state_g1.undo", "bytes"}, func(n float64) float64 { return n * 5 * mb }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSamples()
			for n := range 100 {
				s.begin(time.Duration(n) * time.Minute)
				value := c.value(float64(n))
				if c.what == resident {
					value += noise(n)
				}
				s.add(c.what.kind, c.what.name, c.what.measure, value)
			}
			verdicts := s.judge(12 * time.Minute)
			if len(verdicts) != 1 || verdicts[0].bad != c.bad {
				t.Errorf("%+v", verdicts)
			}
		})
	}
}
