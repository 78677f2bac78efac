package notify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"perpkeeper/pkg/retry"
)

// Notifier takes messages to one receiver. It is safe for concurrent use.
type Notifier interface {
	// Notify makes one try. Its error is nil when the receiver has the message, a [RefusedError] when the receiver has
	// refused it, and anything else when the same message may work later; it may have arrived all the same. No error
	// holds a credential, or of a URL more than its host.
	Notify(ctx context.Context, m Message) error
}

// Plugin is one table of the configuration: a receiver as a plug-in describes it.
type Plugin interface {
	// Target is who the receiver is.
	Target() Target
	// Validate names every setting that cannot work, the target's left out.
	Validate() error
	// Open returns the way to the receiver. Nothing is asked yet. No try takes longer than timeout.
	Open(timeout time.Duration) Notifier
}

// Target is a receiver's name and what it is notified of.
type Target struct {
	// Name is the receiver's place in the results, and its label in metrics and logs. Under another name it is
	// notified of nothing that was before.
	Name     string
	Audience Audience
}

var targetName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Problems names what cannot work, a line each.
func (t Target) Problems() (problems []string) {
	if !targetName.MatchString(t.Name) {
		problems = append(problems, fmt.Sprintf("name: %q is not lower case letters, digits and dashes", t.Name))
	}
	if !slices.Contains(audiences(), t.Audience) {
		problems = append(problems, fmt.Sprintf("audience: %q is neither %s nor %s", t.Audience, Owner, Operator))
	}
	return problems
}

// Receiver is one receiver and the way to it.
type Receiver struct {
	Target
	Notifier
}

// RefusedError means that a receiver answered, and refused a message.
type RefusedError struct {
	Status int    // of HTTP
	Body   string // the beginning of its answer
}

// Refused is a refusal with the beginning of an answer, 256 bytes at most.
func Refused(status int, answer string) *RefusedError {
	const worthShowing = 256
	return &RefusedError{Status: status, Body: answer[:min(len(answer), worthShowing)]}
}

// Error names the status.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the receiver answers %d: %q", e.Status, e.Body)
}

// Policy is how often, and how patiently, a message is tried.
type Policy struct {
	Attempts   int // refusals after which a message is given up; at least 1
	FirstPause time.Duration
	LongPause  time.Duration
}

// Deliver tries until the receiver has a message, and calls onRetry for every failure that will be tried again. It
// gives up with a [RefusedError] after as many refusals as the policy has, and with ctx's cause when ctx ends.
func (p Policy) Deliver(ctx context.Context, to Notifier, m Message,
	onRetry func(attempt int, err error, pause time.Duration)) error {
	policy := retry.Policy{Initial: p.FirstPause, Max: max(p.LongPause, p.FirstPause), OnRetry: onRetry}
	refusals := 0
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		err := to.Notify(ctx, m)
		if _, refused := errors.AsType[*RefusedError](err); refused {
			if refusals++; refusals >= p.Attempts {
				return retry.Stop(err)
			}
		}
		return err
	})
}
