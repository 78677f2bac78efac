package simulator

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/tier"
)

// Scenario is what is simulated, and what its result must be. Times are counted from the beginning of the play.
type Scenario struct {
	Name string `toml:"name"`
	// Says is one line for people.
	Says string `toml:"says"`
	// Duration is for how long jobs come into the world. The play goes on until all have ended, at most for settle.
	Duration Span `toml:"duration"`
	Keepers  int  `toml:"keepers"`
	// Seeds is how many plays make a result: those of the seeds 1, 2, ….
	Seeds int  `toml:"seeds"`
	Jobs  Jobs `toml:"jobs"`
	// Policy is the policy all keepers follow, see the package tier. Under the policy delay the n-th keeper waits n-1
	// windows.
	Policy string        `toml:"policy"`
	Faults []Fault       `toml:"fault"`
	Expect []Expectation `toml:"expect"`
}

// Jobs are the jobs that a scenario creates. A rate is given per second or per day; the kinds are shares of it.
type Jobs struct {
	PerSecond    float64 `toml:"per_second"`
	PerDay       float64 `toml:"per_day"`
	MarketOrders int     `toml:"market_orders"`
	LimitOrders  int     `toml:"limit_orders"`
	Liquidations int     `toml:"liquidations"`
	Deposits     int     `toml:"deposits"`
	// Poison is the percentage of jobs that revert whoever sends them.
	Poison float64 `toml:"poison"`
}

// Rate is how many jobs come in a second.
func (j Jobs) Rate() float64 { return j.PerSecond + j.PerDay/86_400 }

// Span is a length of time, written as 1m30s.
type Span time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	if err != nil {
		return fmt.Errorf("%q is not a duration (write it with a unit: 500ms, 10s, 2m)", text)
	}
	return nil
}

// defaultScenario is three healthy keepers and one job a second.
func defaultScenario() Scenario {
	return Scenario{
		Keepers: 3, Seeds: 20, Policy: tier.DefaultConfig().Policy,
		Jobs: Jobs{MarketOrders: 4, LimitOrders: 3, Liquidations: 2, Deposits: 1},
	}
}

// Load reads a scenario from a file.
func Load(path string) (Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}
	s, err := parse(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", path, err)
	}
	s.Name = cmp.Or(s.Name, strings.TrimSuffix(filepath.Base(path), ".toml"))
	return s, nil
}

// LoadAll reads the scenarios of a directory, in the order of their file names.
func LoadAll(dir string) (all []Scenario, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s: there is no scenario (*.toml)", dir)
	}
	for _, path := range paths {
		s, failed := Load(path)
		err = errors.Join(err, failed)
		all = append(all, s)
	}
	return all, err
}

// parse reads a scenario from its text. All problems are returned at once, one line each.
func parse(text []byte) (Scenario, error) {
	s := defaultScenario()
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&s)
	if err != nil {
		return Scenario{}, explain(err)
	}
	return s, s.Validate()
}

// explain reports where the text cannot be read.
func explain(err error) error {
	if strict, is := errors.AsType[*toml.StrictMissingError](err); is {
		var problems []error
		for _, e := range strict.Errors {
			row, _ := e.Position()
			problems = append(problems, fmt.Errorf("line %d: unknown key %s", row, strings.Join(e.Key(), ".")))
		}
		return errors.Join(problems...)
	}
	if bad, is := errors.AsType[*toml.DecodeError](err); is {
		row, _ := bad.Position()
		return fmt.Errorf("line %d: %s", row, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return err
}

// Validate names everything that cannot be played.
func (s Scenario) Validate() error {
	var problems []error
	add := func(wrong bool, format string, args ...any) {
		problems = append(problems, check.Refuse(wrong, format, args...))
	}
	add(s.Duration <= 0, "duration: it is missing (for how long do jobs come into the world?)")
	add(s.Keepers < 1 || s.Keepers > 9, "keepers: %d is not between 1 and 9", s.Keepers)
	add(s.Seeds < 1, "seeds: %d is less than 1", s.Seeds)
	add(s.Jobs.Rate() <= 0, "jobs: name a rate, per_second or per_day")
	add(s.Jobs.PerSecond > 0 && s.Jobs.PerDay > 0, "jobs: per_second and per_day are two ways to say one thing; "+
		"name one")
	add(slices.Min(s.Jobs.shares()) < 0 || slices.Max(s.Jobs.shares()) == 0, "jobs: the shares of the kinds are %v; "+
		"none may be negative, one must be positive", s.Jobs.shares())
	add(s.Jobs.Poison < 0 || s.Jobs.Poison > 100, "jobs.poison: %g is no percentage", s.Jobs.Poison)
	add(s.Policy != tier.PolicyWindows && s.Policy != tier.PolicyDelay, "policy: %q is neither %s nor %s", s.Policy,
		tier.PolicyWindows, tier.PolicyDelay)
	for i, f := range s.Faults {
		problems = append(problems, prefixed(fmt.Sprintf("fault[%d]", i), f.validate(s.Keepers)))
	}
	for i, e := range s.Expect {
		problems = append(problems, prefixed(fmt.Sprintf("expect[%d]", i), e.validate(s.Keepers)))
	}
	return errors.Join(problems...)
}

func prefixed(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", where, err)
}

// kinds are those of the mix, in the order of shares.
var kinds = []job.Kind{job.Order, limitOrder, job.Liquidation, job.Deposit}

// limitOrder separates limit orders from market orders in reports; to a keeper both are of the kind order.
const limitOrder job.Kind = "limitOrder"

func (j Jobs) shares() []int { return []int{j.MarketOrders, j.LimitOrders, j.Liquidations, j.Deposits} }
