package emergency

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/check"
)

// Action is something that can be done when keepers fail.
type Action string

// The actions.
const (
	Notify Action = "notify" // notify the operators of what the conditions call for
	// LiquidateFirst: list pending liquidations, and let those that wait for their next try be tried at once.
	LiquidateFirst Action = "liquidate_first"
	PausePositions Action = "pause_positions" // the venue takes no orders that open or enlarge positions
	RaiseMargin    Action = "raise_margin"    // positions that are opened or enlarged need more collateral
	defaultIdle           = 2 * time.Minute   // longer than three tiers' windows
)

// Actions lists them, in the order in which they are to be taken.
func Actions() []Action { return []Action{Notify, LiquidateFirst, PausePositions, RaiseMargin} }

// OnChain reports whether an action is calls of the venue's contracts.
func (a Action) OnChain() bool { return a == PausePositions || a == RaiseMargin }

// Config is the [emergency] section. Nothing may be done by default.
type Config struct {
	Actions []string `toml:"actions" help:"what may be done at all: notify (a monitor tells the operators by itself which of the others its alarms call for), liquidate_first, pause_positions, raise_margin; none by default"`
	// IdleAfter: for how long nobody must have executed anything, jobs being due, before that calls for actions.
	IdleAfter time.Duration `toml:"-"`
	BadDebt   uint64        `toml:"bad_debt" help:"USD of bad debt within an hour above which actions are called for; 0 = never"`

	Markets  []chain.Address `toml:"markets" help:"the markets whose collateral factor raise_margin raises"`
	Contract chain.Address   `toml:"contract" help:"the venue's Config contract; calls of it are made for pause_positions and raise_margin"`
	Account  chain.Address   `toml:"account" help:"who has the role CONFIG_KEEPER, such as a multisig; calls are rehearsed as it and sent by it alone"`

	Calls []Allowed `toml:"calls" help:"what keeperctl may send itself, with the key of keeperctl.emergency_signer, which must be account's; none = calls are handed over"`
}

// MarginPercent is to how many percent of its present value raise_margin raises the collateral factor: × 1.5 (LIQ-15).
const MarginPercent = 150

// DefaultConfig permits nothing.
func DefaultConfig() Config { return Config{IdleAfter: defaultIdle} }

// Permits reports whether an action may be taken.
func (c Config) Permits(a Action) bool { return slices.Contains(c.Actions, string(a)) }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	var problems []error
	add := func(wrong bool, format string, args ...any) {
		problems = append(problems, check.Refuse(wrong, format, args...))
	}
	for _, a := range c.Actions {
		add(!slices.Contains(Actions(), Action(a)), "actions: %q is none of %v", a, Actions())
		add(Action(a).OnChain() && c.Contract.IsZero(), "contract: is needed for %s", a)
		add(Action(a).OnChain() && c.Account.IsZero(), "account: is needed for %s", a)
		add(Action(a) == RaiseMargin && len(c.Markets) == 0, "markets: none is named, and %s would raise nothing", a)
	}
	for i, a := range c.Calls {
		err := a.Validate()
		add(err != nil, "calls[%d]: %w", i, err)
	}
	return errors.Join(problems...)
}

// Facts are the measures by which actions are recommended.
type Facts struct {
	// Idle is for how long jobs have been due and nobody has executed anything; 0 while somebody does.
	Idle time.Duration
	// BadDebt is USD that were not covered within an hour.
	BadDebt uint64
}

// Recommendation is an action that the facts call for, and why.
type Recommendation struct {
	Action Action
	Cause  string
}

// Recommend returns which of the permitted actions the facts call for, in the order in which they are to be taken. Bad
// debt while keepers execute calls for nothing in the keeper: liquidations are on their way.
func (c Config) Recommend(f Facts) (recommended []Recommendation) {
	idle, indebted := f.Idle >= c.IdleAfter, c.BadDebt > 0 && f.BadDebt > c.BadDebt
	var cause string
	switch {
	case idle && indebted:
		cause = fmt.Sprintf("nobody has executed anything for %s, and %d USD were not covered within an hour",
			f.Idle.Round(time.Second), f.BadDebt)
	case idle:
		cause = fmt.Sprintf("nobody has executed anything for %s, and jobs are due", f.Idle.Round(time.Second))
	case indebted:
		cause = fmt.Sprintf("%d USD were not covered within an hour, which is more than %d", f.BadDebt, c.BadDebt)
	default:
		return nil
	}
	for _, a := range Actions() {
		if c.Permits(a) && (idle || a != LiquidateFirst) {
			recommended = append(recommended, Recommendation{a, cause})
		}
	}
	return recommended
}
