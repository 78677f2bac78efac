package emergency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
)

// Order is an operator's order to take an action.
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
	Sent       Stage = "sent"        // signed by the emergency signer, and about to be broadcast
	Done       Stage = "done"
	Failed     Stage = "failed"
)

// Step is one call of the venue, or, without a contract, something that is done in the keeper.
type Step struct {
	Contract    chain.Address
	Calldata    []byte
	Undo        []byte
	Description string
}

// Entry is what is kept of one step of a run.
type Entry struct {
	Order
	At     time.Time // set by the store
	Stage  Stage
	Step   Step
	TxHash chain.Hash // of what was sent; zero for what was not
	// Outcome is the result of the step, in words.
	Outcome string
}

// Recorder stores entries. They are never changed.
type Recorder interface {
	Record(ctx context.Context, e Entry) error
}

// Executor plans, rehearses and does actions.
type Executor interface {
	// Plan returns the steps of an action, without doing any.
	Plan(ctx context.Context, a Action) ([]Step, error)
	// Rehearse returns nil if a step would succeed.
	Rehearse(ctx context.Context, d Step) error
	// Do does a step that is the keeper's own, and returns its result in words.
	Do(ctx context.Context, o Order, d Step) (outcome string, err error)
}

// Sender signs, broadcasts and follows calls of the venue.
type Sender interface {
	// Send makes a call. It calls signed with the transaction before it is broadcast; an error of that ends it there.
	// It returns nil when the call has succeeded in a block.
	Send(ctx context.Context, d Step, signed func(tx chain.Hash) error) error
}

// ErrNotPermitted marks an action that is not configured.
var ErrNotPermitted = errors.New("it is not among emergency.actions")

// ErrReverted marks a call that is in a block and has failed there.
var ErrReverted = errors.New("it failed in its block")

// Run takes one action. It returns the steps that were planned. Calls of the venue are sent, one after the other has
// succeeded; with no sender the caller hands them over.
func Run(ctx context.Context, cfg Config, o Order, m Executor, s Sender, r Recorder) ([]Step, error) {
	if !cfg.Permits(o.Action) {
		return nil, fmt.Errorf("%s is not done: %w", o.Action, ErrNotPermitted)
	}
	steps, err := m.Plan(ctx, o.Action)
	if err != nil {
		return nil, fmt.Errorf("planning %s: %w", o.Action, err)
	}
	for _, d := range steps {
		if err := r.Record(ctx, Entry{Order: o, Stage: Planned, Step: d, Outcome: d.Description}); err != nil {
			return nil, err
		}
	}
	if err := rehearse(ctx, o, steps, m, r); err != nil || o.DryRun {
		return steps, err
	}
	for _, d := range steps {
		if err := do(ctx, o, d, m, s, r); err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// rehearse tries every step before any is done.
func rehearse(ctx context.Context, o Order, steps []Step, m Executor, r Recorder) error {
	for _, d := range steps {
		stage, outcome := Rehearsed, "it would succeed"
		err := m.Rehearse(ctx, d)
		if err != nil {
			stage, outcome = Failed, "the rehearsal failed: "+err.Error()
		}
		if noted := r.Record(ctx, Entry{Order: o, Stage: stage, Step: d, Outcome: outcome}); noted != nil ||
			err != nil {
			return errors.Join(wrap(err, "rehearsing %s (%s)", o.Action, d.Description), noted)
		}
	}
	return nil
}

// do sends a call or hands it over, or does what is the keeper's own.
func do(ctx context.Context, o Order, d Step, m Executor, s Sender, r Recorder) error {
	switch {
	case !d.Contract.IsZero() && s == nil:
		return r.Record(ctx, Entry{Order: o, Stage: HandedOver, Step: d,
			Outcome: "handed over to the operator; nothing was sent"})
	case !d.Contract.IsZero():
		return send(ctx, o, d, s, r)
	}
	outcome, err := m.Do(ctx, o, d)
	stage := Done
	if err != nil {
		stage, outcome = Failed, err.Error()
	}
	return errors.Join(wrap(err, "doing %s", o.Action),
		r.Record(ctx, Entry{Order: o, Stage: stage, Step: d, Outcome: outcome}))
}

// send makes a call, with its transaction on record before anybody can see it. What became of a call that was
// broadcast and not seen in a block nobody knows: it stays at the stage sent.
func send(ctx context.Context, o Order, d Step, s Sender, r Recorder) error {
	e := Entry{Order: o, Step: d}
	err := s.Send(ctx, d, func(tx chain.Hash) error {
		e.Stage, e.TxHash, e.Outcome = Sent, tx, "signed; it is broadcast now"
		return r.Record(ctx, e)
	})
	switch {
	case err == nil:
		e.Stage, e.Outcome = Done, "it succeeded in a block"
	case errors.Is(err, ErrReverted) || e.TxHash.IsZero():
		e.Stage, e.Outcome = Failed, err.Error()
	default:
		return wrap(err, "sending %s (%s)", o.Action, d.Description)
	}
	return errors.Join(wrap(err, "sending %s (%s)", o.Action, d.Description), r.Record(ctx, e))
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
