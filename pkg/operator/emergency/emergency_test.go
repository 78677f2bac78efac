package emergency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
)

func permitted(actions ...Action) Config {
	c := DefaultConfig()
	c.BadDebt, c.Contract, c.Account, c.Markets = 1000, chain.Address{1}, chain.Address{2}, []chain.Address{{3}}
	for _, a := range actions {
		c.Actions = append(c.Actions, string(a))
	}
	return c
}

// LIQ-15: what calls for which actions; nothing that is not permitted.
func TestFollow(t *testing.T) {
	all := permitted(RaiseMargin, PausePositions, LiquidateFirst, Notify)
	for name, c := range map[string]struct {
		cfg   Config
		facts Facts
		want  []Action
		cause string
	}{
		"all is well": {all, Facts{Idle: all.IdleAfter - 1, BadDebt: 1000}, nil, ""},
		"nobody executes": {all, Facts{Idle: all.IdleAfter}, Actions(),
			"nobody has executed anything for 2m0s, and jobs are due"},
		"bad debt": {all, Facts{BadDebt: 1001}, []Action{Notify, PausePositions, RaiseMargin},
			"1001 USD were not covered"},
		"both": {all, Facts{Idle: time.Hour, BadDebt: 5000}, Actions(),
			"nobody has executed anything for 1h0m0s, and 5000 USD"},
		"nothing is permitted": {permitted(), Facts{Idle: time.Hour, BadDebt: 5000}, nil, ""},
		"one is permitted": {permitted(PausePositions), Facts{Idle: time.Hour}, []Action{PausePositions},
			"nobody"},
		"bad debt never calls for any": {DefaultConfig(), Facts{BadDebt: 1 << 60}, nil, ""},
	} {
		var got []Action
		for _, call := range c.cfg.Recommend(c.facts) {
			got = append(got, call.Action)
			if !strings.Contains(call.Cause, c.cause) {
				t.Errorf("%s: %q", name, call.Cause)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	if err := errors.Join(DefaultConfig().Validate(), permitted(Actions()...).Validate()); err != nil {
		t.Errorf("refused: %v", err)
	}
	c := DefaultConfig()
	c.Actions = []string{"dance", "raise_margin"}
	err := c.Validate()
	for _, want := range []string{
		`actions: "dance"`, "contract: is needed for raise_margin", "account: is needed", "markets: none",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// fakeExecutor is an executor and a recorder that keep a log of their calls.
type fakeExecutor struct {
	steps []Step
	bad   string // the step that fails when it is rehearsed
	cut   Stage  // the stage that cannot be recorded
	log   []string
}

func (t *fakeExecutor) Plan(context.Context, Action) ([]Step, error) { return t.steps, nil }

func (t *fakeExecutor) Rehearse(_ context.Context, d Step) error {
	t.log = append(t.log, "rehearse "+d.Description)
	if d.Description == t.bad {
		return errors.New("Unauthorized")
	}
	return nil
}

func (t *fakeExecutor) Do(_ context.Context, _ Order, d Step) (string, error) {
	t.log = append(t.log, "do "+d.Description)
	return "well", nil
}

func (t *fakeExecutor) Record(_ context.Context, e Entry) error {
	if e.Stage == t.cut {
		return errors.New("the database is away")
	}
	t.log = append(t.log, fmt.Sprintf("%s %s dry=%t", e.Stage, e.Step.Description, e.DryRun))
	return nil
}

// LIQ-15: planned on record, then rehearsed, then handed over; all or nothing, and nothing of a dry run.
func TestRun(t *testing.T) {
	calls := []Step{{Contract: chain.Address{1}, Description: "a"}, {Contract: chain.Address{1}, Description: "b"}}
	for name, c := range map[string]struct {
		dry  bool
		t    fakeExecutor
		want string
		fail string
	}{
		"dry run": {true, fakeExecutor{steps: calls},
			"planned a dry=true, planned b dry=true, rehearse a, rehearsed a dry=true, rehearse b, rehearsed b dry=true", ""},
		"for good": {false, fakeExecutor{steps: calls},
			"planned a dry=false, planned b dry=false, rehearse a, rehearsed a dry=false, rehearse b, rehearsed b " +
				"dry=false, " +
				"handed_over a dry=false, handed_over b dry=false", ""},
		"one would fail": {false, fakeExecutor{steps: calls, bad: "b"},
			"planned a dry=false, planned b dry=false, rehearse a, rehearsed a dry=false, rehearse b, failed b " +
				"dry=false", "Unauthorized"},
		"the plan cannot be recorded": {false, fakeExecutor{steps: calls, cut: Planned}, "", "the database is away"},
		"the keeper's own": {false, fakeExecutor{steps: []Step{{Description: "a"}}},
			"planned a dry=false, rehearse a, rehearsed a dry=false, do a, done a dry=false", ""},
	} {
		cfg := permitted(RaiseMargin)
		_, err := Run(t.Context(), cfg, Order{Action: RaiseMargin, DryRun: c.dry}, &c.t, nil, &c.t)
		if got := strings.Join(c.t.log, ", "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none fakeExecutor
	if _, err := Run(t.Context(), permitted(Notify), Order{Action: RaiseMargin}, &none, nil, &none); !errors.Is(err,
		ErrNotPermitted) || len(none.log) > 0 {
		t.Errorf("what is not permitted: %v, %v", err, none.log)
	}
}
