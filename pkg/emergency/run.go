package emergency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
)

// Order is what somebody wants done.
type Order struct {
	Run      string // identifies the run; entries of one share it
	Action   Action
	Operator string
	Cause    string
	DryRun   bool
}

// Stage is how far a run has come.
type Stage string

// The stages.
const (
	Planned    Stage = "planned"
	Rehearsed  Stage = "rehearsed"
	HandedOver Stage = "handed_over" // to the operator, who has it sent
	Done       Stage = "done"
	Failed     Stage = "failed"
)

// Deed is one call of the venue, or, without a contract, something that is done in the keeper.
type Deed struct {
	Contract chain.Address
	Calldata []byte
	Undo     []byte
	Does     string
}

// Entry is what is kept of one step of a run.
type Entry struct {
	Order
	At     time.Time // set by the store
	Stage  Stage
	Deed   Deed
	TxHash chain.Hash // of what was sent; zero for what was not
	// Outcome is what came of the step, in words.
	Outcome string
}

// Records keeps entries, for good.
type Records interface {
	Record(ctx context.Context, e Entry) error
}

// Means are how an action is planned, rehearsed and done.
type Means interface {
	// Plan returns the deeds of an action, without doing any.
	Plan(ctx context.Context, a Action) ([]Deed, error)
	// Rehearse returns nil if a deed would succeed.
	Rehearse(ctx context.Context, d Deed) error
	// Do does a deed that is the keeper's own, and says what came of it.
	Do(ctx context.Context, o Order, d Deed) (outcome string, err error)
}

// ErrNotPermitted marks an action that is not configured.
var ErrNotPermitted = errors.New("it is not among emergency.actions")

// Run takes one action. The deeds it returns are those that were planned; they are the caller's to hand on.
func Run(ctx context.Context, cfg Config, o Order, m Means, r Records) ([]Deed, error) {
	if !cfg.Permits(o.Action) {
		return nil, fmt.Errorf("%s is not done: %w", o.Action, ErrNotPermitted)
	}
	deeds, err := m.Plan(ctx, o.Action)
	if err != nil {
		return nil, fmt.Errorf("planning %s: %w", o.Action, err)
	}
	for _, d := range deeds {
		if err := r.Record(ctx, Entry{Order: o, Stage: Planned, Deed: d, Outcome: d.Does}); err != nil {
			return nil, err
		}
	}
	if err := rehearse(ctx, o, deeds, m, r); err != nil || o.DryRun {
		return deeds, err
	}
	for _, d := range deeds {
		if err := do(ctx, o, d, m, r); err != nil {
			return deeds, err
		}
	}
	return deeds, nil
}

// rehearse tries every deed before any is done.
func rehearse(ctx context.Context, o Order, deeds []Deed, m Means, r Records) error {
	for _, d := range deeds {
		stage, outcome := Rehearsed, "it would succeed"
		err := m.Rehearse(ctx, d)
		if err != nil {
			stage, outcome = Failed, "the rehearsal failed: "+err.Error()
		}
		if noted := r.Record(ctx, Entry{Order: o, Stage: stage, Deed: d, Outcome: outcome}); noted != nil ||
			err != nil {
			return errors.Join(wrap(err, "rehearsing %s (%s)", o.Action, d.Does), noted)
		}
	}
	return nil
}

// do hands a call over, or does what is the keeper's own.
func do(ctx context.Context, o Order, d Deed, m Means, r Records) error {
	if !d.Contract.IsZero() {
		return r.Record(ctx, Entry{Order: o, Stage: HandedOver, Deed: d,
			Outcome: "handed over to the operator; nothing was sent"})
	}
	outcome, err := m.Do(ctx, o, d)
	stage := Done
	if err != nil {
		stage, outcome = Failed, err.Error()
	}
	return errors.Join(wrap(err, "doing %s", o.Action),
		r.Record(ctx, Entry{Order: o, Stage: stage, Deed: d, Outcome: outcome}))
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
