package ledger

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// Enqueue implements txm.Queue.
func (l *Ledger) Enqueue(_ context.Context, j job.Job) (txm.Admission, error) {
	return ask(l, func() (txm.Admission, error) {
		foundMs, last := j.Evidence.Block.TimeMs, l.newest[j.ID]
		switch {
		case last == nil:
		case last.State.Terminal() && last.retryAfterMs >= foundMs:
			return txm.Cooling, nil
		case !last.State.Terminal() && (last.State != txm.Queued || foundMs < last.ObservedMs):
			return txm.Flying, nil
		}
		a, known := l.accounts[j.Signer]
		if !known {
			return "", fmt.Errorf("storing job %s for %s: %w", j.ID, j.Signer, txm.ErrUnknownSigner)
		}
		if last != nil && last.State == txm.Queued {
			l.accounts[last.Signer].dequeue(last)
			last.Job, last.Signer, last.ObservedMs = j, j.Signer, foundMs
			a.enqueue(last)
			return txm.Refreshed, nil
		}
		a.enqueue(l.attempt(j, last))
		return txm.NewAttempt, nil
	})
}

// attempt begins the next attempt of a job.
func (l *Ledger) attempt(j job.Job, last *intent) *intent {
	i := l.add(txm.Intent{Job: j, Attempt: 1, Signer: j.Signer, State: txm.Queued, ObservedMs: j.Evidence.Block.TimeMs})
	if last != nil {
		i.Attempt = last.Attempt + 1
		if again(last.Outcome) {
			i.Tries = last.Tries + 1
		}
	}
	return i
}

// retried reports whether an attempt is to be followed by another; of these rules only the ledger's own clock differs.
func (l *Ledger) retried(i *intent) bool {
	return i.State.Terminal() && slices.Contains(txm.Transient(), i.Outcome) && !i.GivenUp &&
		l.clock().Sub(i.endedAt) < time.Hour && i.Job.Kind != txm.Filler && l.newest[i.Job.ID] == i
}

// Failed implements txm.Again.
func (l *Ledger) Failed(_ context.Context, signer chain.Address) ([]txm.Failed, error) {
	return ask(l, func() (failed []txm.Failed, err error) {
		for _, i := range l.newest {
			if i.Signer == signer && l.retried(i) {
				failed = append(failed, txm.Failed{Intent: i.ID, AtMs: i.retryAfterMs})
			}
		}
		slices.SortFunc(failed, func(a, b txm.Failed) int { return int(a.Intent - b.Intent) })
		return failed, nil
	})
}

// Retry implements txm.Again.
func (l *Ledger) Retry(_ context.Context, f lease.Fence, id int64) error {
	return l.fenced("retry", f, func(a *account) bool {
		i := l.intents[id]
		if i == nil || i.Signer != f.Signer || !l.retried(i) {
			return false
		}
		next := l.attempt(i.Job, i)
		next.ObservedMs = i.ObservedMs
		a.enqueue(next)
		return true
	})
}

// again reports whether the attempt after one that ended so is another try.
func again(o job.Outcome) bool { return o.Failure() || o == job.Foreign }

// add stores an intent.
func (l *Ledger) add(of txm.Intent) *intent {
	l.lastID++
	of.ID = l.lastID
	i := &intent{Intent: of, queuedAt: l.clock()}
	l.intents[i.ID], l.newest[i.Job.ID] = i, i
	return i
}

func byUrgency(a, b *intent) int {
	switch {
	case a.Job.Before(b.Job):
		return -1
	case b.Job.Before(a.Job):
		return 1
	}
	return 0
}

func (a *account) enqueue(i *intent) {
	at, _ := slices.BinarySearchFunc(a.queue, i, byUrgency)
	a.queue = slices.Insert(a.queue, at, i)
}

func (a *account) dequeue(i *intent) {
	// a job has one live attempt, so that none is its equal
	if at, found := slices.BinarySearchFunc(a.queue, i, byUrgency); found {
		a.queue = slices.Delete(a.queue, at, at+1)
	}
}

// Heads implements txm.Queue. The limit counts before liquidations without a place are left out: an answer may be
// shorter than it.
func (l *Ledger) Heads(_ context.Context, signer chain.Address, p txm.Pick) ([]txm.Intent, error) {
	return ask(l, func() (heads []txm.Intent, err error) {
		a := l.accounts[signer]
		if a == nil || a.paused {
			return nil, nil
		}
		places := math.MaxInt
		if p.Liquidations > 0 {
			places = p.Liquidations - l.counted(a)
		}
		for _, i := range l.claimable(a, p, places > 0) {
			if i.Job.Kind == job.Liquidation {
				if places--; places < 0 {
					continue
				}
			}
			heads = append(heads, l.read(i))
		}
		return heads, nil
	})
}

// claimable are the first of a queue that nothing in flight stands in the way of.
func (l *Ledger) claimable(a *account, p txm.Pick, roomy bool) (found []*intent) {
	waits := !roomy && slices.ContainsFunc(a.queue, func(i *intent) bool { return i.Job.Kind == job.Liquidation })
	for _, i := range a.queue {
		if len(found) == p.Limit {
			break
		}
		liquidates := i.Job.Kind == job.Liquidation
		if s, deleverages := sideOf(i.Job); deleverages && l.sides[s] {
			continue
		}
		if l.keys[i.Job.Key] || liquidates && (!roomy || l.liquidated(i.Job.Account, true)) ||
			slices.Contains(p.Except, i.ID) || (p.Urgent || waits) && i.Job.Kind.Lane() != job.LiquidationLane {
			continue
		}
		found = append(found, i)
	}
	return found
}

// Paused implements txm.Queue.
func (l *Ledger) Paused(_ context.Context, signer chain.Address) (string, error) {
	return ask(l, func() (string, error) {
		if a := l.accounts[signer]; a != nil && a.paused {
			return a.pausedFor, nil
		}
		return "", nil
	})
}

// read is an intent as it is now.
func (l *Ledger) read(i *intent) txm.Intent {
	out := i.Intent
	out.Waited = l.clock().Sub(i.queuedAt)
	return out
}

// Depth implements txm.Queue.
func (l *Ledger) Depth(_ context.Context, signer chain.Address) (int, error) {
	return ask(l, func() (int, error) {
		if a := l.accounts[signer]; a != nil {
			return len(a.queue), nil
		}
		return 0, nil
	})
}

// Skip implements txm.Queue.
func (l *Ledger) Skip(_ context.Context, f lease.Fence, id int64, e txm.Ending) error {
	return l.fenced("skip", f, func(a *account) bool {
		i := l.intents[id]
		if i == nil || i.Signer != f.Signer || !i.State.To(txm.Skipped) {
			return false
		}
		a.dequeue(i)
		l.end(a, i, txm.Skipped, e.Verdict, e.Rest)
		return true
	})
}

// end closes an attempt. A sender's own fillers are nobody's news.
func (l *Ledger) end(a *account, i *intent, s txm.State, v txm.Verdict, r txm.Rest) {
	i.State, i.Outcome, i.Reason, i.endedAt = s, v.Outcome, v.Reason, l.clock()
	i.retryAfterMs, i.GivenUp = r.RetryAfterMs, r.GivenUp
	if i.Job.Kind != txm.Filler {
		at, _ := slices.BinarySearchFunc(a.unreported, i, byID)
		a.unreported = slices.Insert(a.unreported, at, i)
	}
}

func byID(a, b *intent) int { return int(a.ID - b.ID) }
