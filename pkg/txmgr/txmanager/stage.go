package txmanager

import (
	"context"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// Stage is one stretch of the pipeline from a queued intent to a claimed nonce. It fills in what the next one needs.
//
// An error means that the stage could not decide: something is away, or the lease term is over. The intent stays
// queued.
type Stage struct {
	Name string
	Run  func(ctx context.Context, t *Task) (Verdict, error)
}

// Task is an intent in the pipeline.
type Task struct {
	Intent txm.Intent
	// Read is what was looked up for the stages a moment before the first of them; nil where nothing was, so that they
	// have to ask themselves. It is the user's own.
	Read any
	Call Call         // what to send; set by the last stage
	Tx   txm.SignedTx // what was stored; set by the claim

	begun   uint64    // its place in the order in which tasks were begun
	through time.Time // when it was through the stages
}

// Job is what the task is to have executed.
func (t *Task) Job() job.Job { return t.Intent.Job }

// Call is what a transaction asks of a contract.
type Call struct {
	To   chain.Address
	Data []byte
	Gas  uint64 // limit
	// Value is wei: 1 where a nonce is freed by a payment, else 0.
	Value uint64
	// Rehearsal is the call of the same contract that shows whether the venue would execute an order that may wait; nil
	// for everything else.
	Rehearsal []byte
}

// Verdict is what a stage decided. The zero verdict lets the task go on.
type Verdict struct {
	Kind    Decision
	Outcome job.Outcome // set where Kind is Drop
	Reason  string
	// Premature is true when the venue would do it, or do it well, a little later.
	Premature bool
	// Pause is for how long a task that waits or yields is passed over; 0 = the usual pause.
	Pause time.Duration
	// Heads is for how many heads a task that waits is passed over, in place of a time; 0 = by time.
	Heads uint64
	// Shown is true when readiness is told the reason, while no other task goes on.
	Shown bool
	Wake  <-chan struct{} // ends the wait when it is closed; nil = nothing does
}

// Decision is what becomes of a task after a stage.
type Decision int

// The decisions of a stage.
const (
	Proceed  Decision = iota
	Retry             // not now; other tasks may go first
	Defer             // not now, through others' doing, for however long it takes; other tasks may go first
	PauseAll          // nothing can be sent now, whatever the task
	Drop              // never; the attempt ends here, without a nonce
)

// Word is a verdict in one word, for people: what becomes of the task, or the outcome by which its attempt ends.
func (v Verdict) Word() string {
	if v.Kind == Drop {
		return string(v.Outcome)
	}
	return [...]string{Proceed: "proceed", Retry: "waiting", Defer: "deferred", PauseAll: "closed"}[v.Kind]
}

// Wait holds a task back for the usual pause.
func Wait(reason string) Verdict { return Verdict{Kind: Retry, Reason: reason} }

// Shut holds every task of the signer back.
func Shut(reason string) Verdict { return Verdict{Kind: PauseAll, Reason: reason} }

// End ends an attempt that has no nonce.
func End(o job.Outcome, reason string) Verdict {
	return Verdict{Kind: Drop, Outcome: o, Reason: reason}
}
