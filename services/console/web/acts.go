package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/services/console/signin"
)

// acts are all that the console can have done, by name.
func (c *console) acts() map[string]act {
	all := []act{
		{name: "signer-pause", Title: "Pause a signer", back: "/signers", WhyNeeded: true,
			Warning: "It claims nothing new until somebody resumes it. What it has in flight goes on.",
			state:   c.signerState, will: pauseWill, do: c.onSigner(c.pause)},
		{name: "signer-resume", Title: "Resume a signer", back: "/signers",
			Warning: "It claims again at once. If the reason for the pause still holds, it is paused again at the " +
				"next try.",
			state: c.signerState, will: resumeWill, do: c.onSigner(c.resume)},
		{name: "nonce-cancel", Title: "Call a transaction off", back: "/signers",
			WhyNeeded: true,
			Warning: "The sender gives this nonce to a payment to itself; which of the two the chain takes is not " +
				"certain. The job stays due and is taken up again when it has cooled down.",
			state: c.nonceState, will: cancelWill, do: c.cancelNonce},
		{name: "delayed-run", Title: "Scan for delayed jobs now", back: "/delayed",
			Warning: "Every planner looks at once for delayed jobs that are due.",
			state:   func(context.Context, string) (facts, error) { return facts{}, nil }, will: scanWill, do: c.scan},
		{name: "delayed-retry", Title: "Retry a delayed job", back: "/delayed",
			Warning: "It is due at once, with all its attempts before it.",
			state:   c.delayedState, will: retryWill, do: c.onDelayed(action.RetryDelayed)},
		{name: "delayed-cancel", Title: "Call a delayed job off", back: "/delayed",
			WhyNeeded: true,
			Warning:   "It is never done. There is no way back.",
			state:     c.delayedState, will: callOffWill, do: c.onDelayed(action.CancelDelayed)},
		{name: "letter-replay", Title: "Have a job done that was given up",
			back: "/deadletters",
			Warning: "The job is published again as of now. A sender looks at it anew before it sends anything, and " +
				"has " +
				"one transaction of it at a time: nothing is executed twice.",
			state: c.letterState, will: replayWill, do: c.replay},
	}
	byName := map[string]act{}
	for _, a := range all {
		byName[a.name] = a
	}
	return byName
}

// Things of a signer, as confirmations and the record name them.
const (
	factPaused = "paused"
	factStatus = "status"
	factOff    = "called off"
	factDue    = "due"
	dueNow     = "now"
	notPaused  = "no"
)

// signer finds the signer that an action is about.
func (c *console) signer(ctx context.Context, target string) (txstore.SignerStatus, error) {
	address, err := chain.ParseAddress(target)
	if err != nil {
		return txstore.SignerStatus{}, fmt.Errorf("%q is no signer", target)
	}
	return action.Signer(ctx, c.DB, address)
}

func (c *console) signerState(ctx context.Context, target string) (facts, error) {
	s, err := c.signer(ctx, target)
	if err != nil {
		return nil, err
	}
	return facts{factPaused: cmp.Or(s.Paused, notPaused), "lease": cmp.Or(s.Owner, "nobody"),
		"queued": strconv.Itoa(s.Queued), "in flight": strconv.Itoa(s.InFlight)}, nil
}

func pauseWill(now facts) (facts, error) {
	if now[factPaused] != notPaused {
		return nil, fmt.Errorf("it is paused already, and stays so for its first reason: %s", now[factPaused])
	}
	return facts{factPaused: "for the reason that is given below"}, nil
}

// onSigner is an action on the signer that is named.
func (c *console) onSigner(do func(context.Context, chain.Address, string) error,
) func(context.Context, signin.Session, string, string) error {
	return func(ctx context.Context, s signin.Session, target, why string) error {
		one, err := c.signer(ctx, target)
		if err != nil {
			return err
		}
		return do(ctx, one.Signer, why+" (by "+s.Name+")")
	}
}

func (c *console) pause(ctx context.Context, signer chain.Address, why string) error {
	return action.Pause(ctx, c.DB, signer, why)
}

func resumeWill(now facts) (facts, error) {
	if now[factPaused] == notPaused {
		return nil, errors.New("it is not paused")
	}
	return facts{factPaused: notPaused}, nil
}

func (c *console) resume(ctx context.Context, signer chain.Address, _ string) error {
	_, err := action.Resume(ctx, c.DB, signer)
	return err
}

// nonceOf reads SIGNER:NONCE.
func nonceOf(target string) (signer chain.Address, n uint64, err error) {
	account, number, _ := strings.Cut(target, ":")
	if signer, err = chain.ParseAddress(account); err == nil {
		n, err = strconv.ParseUint(number, 10, 64)
	}
	if err != nil {
		err = fmt.Errorf("%q is no nonce of a signer", target)
	}
	return signer, n, err
}

func (c *console) nonceState(ctx context.Context, target string) (facts, error) {
	signer, n, err := nonceOf(target)
	if err != nil {
		return nil, err
	}
	number, err := action.Number(ctx, c.DB, signer, n)
	if err != nil {
		return nil, err
	}
	return facts{"signer": signer.Hex(), "nonce": strconv.FormatUint(n, 10), "job": cmp.Or(number.JobID, "none"),
		"transaction": cmp.Or(string(number.Intent), "none"), "signed": strconv.Itoa(number.Attempts),
		"last answer":     cmp.Or(number.LastClass, "none"),
		"can be replaced": map[bool]string{true: "yes", false: "no"}[number.Intent.Replaceable()]}, nil
}

func cancelWill(now facts) (facts, error) {
	if now["can be replaced"] != "yes" {
		return nil, fmt.Errorf("nonce %s is not in flight: its transaction is %s", now["nonce"], now["transaction"])
	}
	return facts{factOff: "the sender is asked to"}, nil
}

func (c *console) cancelNonce(ctx context.Context, s signin.Session, target, why string) error {
	signer, n, err := nonceOf(target)
	if err != nil {
		return err
	}
	return txstore.NewSigners(c.DB).CallOff(ctx, signer, n, s.Name, text.FirstLine(why))
}

func scanWill(facts) (facts, error) { return facts{"scan": "now"}, nil }

func (c *console) scan(ctx context.Context, _ signin.Session, _, _ string) error {
	_, err := c.DB.Delayed().Ring(ctx)
	return err
}

func (c *console) delayedState(ctx context.Context, target string) (facts, error) {
	id, err := strconv.ParseInt(target, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no delayed job", target)
	}
	j, err := action.Delayed(ctx, c.DB.Delayed(), id)
	if err != nil {
		return nil, err
	}
	now := facts{"kind": j.Kind, "key": j.Key, factStatus: string(j.Status),
		"failed attempts": strconv.Itoa(j.Attempts),
		"last error":      cmp.Or(text.FirstLine(j.LastError), "none"), factOff: "no", factDue: dueNow}
	if j.Status == delayed.Pending && j.DueAt.After(c.Now()) {
		now[factDue] = text.Moment(j.DueAt)
	}
	if !j.DeletedAt.IsZero() {
		now[factOff] = text.Moment(j.DeletedAt)
	}
	return now, nil
}

func retryWill(now facts) (facts, error) {
	if err := unended(now); err != nil {
		return nil, err
	}
	if now[factDue] != dueNow {
		return nil, fmt.Errorf("it is not due before %s: there is nothing to retry", now[factDue])
	}
	return facts{factStatus: string(delayed.Pending), "failed attempts": "0"}, nil
}

func unended(now facts) error {
	if now[factStatus] == string(delayed.Done) || now[factOff] != "no" {
		return errors.New("it is done, or was called off")
	}
	return nil
}

// onDelayed is an action on the delayed job that is named.
func (c *console) onDelayed(do func(context.Context, pg.Delayed, int64) error,
) func(context.Context, signin.Session, string, string) error {
	return func(ctx context.Context, _ signin.Session, target, _ string) error {
		id, err := strconv.ParseInt(target, 10, 64)
		if err != nil {
			return err
		}
		return do(ctx, c.DB.Delayed(), id)
	}
}

func callOffWill(now facts) (facts, error) { return facts{factOff: "now"}, unended(now) }

func (c *console) letterState(ctx context.Context, target string) (facts, error) {
	l, err := c.letter(ctx, target)
	if err != nil {
		return nil, err
	}
	return facts{"letter": target, "about": l.About(), "why": l.Why(), "from": l.Source()}, nil
}

func (c *console) letter(ctx context.Context, target string) (deadletter.Letter, error) {
	offset, err := strconv.ParseInt(target, 10, 64)
	if err != nil {
		return deadletter.Letter{}, fmt.Errorf("%q is no dead letter", target)
	}
	return c.letters().Replayable(ctx, offset)
}

func replayWill(facts) (facts, error) { return facts{"job": "published again"}, nil }

func (c *console) replay(ctx context.Context, _ signin.Session, target, _ string) error {
	l, err := c.letter(ctx, target)
	if err != nil {
		return err
	}
	_, _, err = c.letters().Replay(ctx, []deadletter.Letter{l})
	return err
}
