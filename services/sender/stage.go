package sender

import (
	"context"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// stage is one stretch of the road from a queued intent to bytes on the wire. It fills in what the next one needs.
//
// An error says that the stage could not tell: something is away, or the tenure is over. The intent stays queued.
type stage struct {
	name string
	run  func(ctx context.Context, t *task) (verdict, error)
}

// task is an intent on the road.
type task struct {
	intent txm.Intent
	call   call         // what to send, after recheck
	tx     txm.SignedTx // what was stored, after claim
}

func (t *task) job() job.Job { return t.intent.Job }

// call is what a transaction asks of a contract.
type call struct {
	to   chain.Address
	data []byte
	gas  uint64
	// rehearsal is the call of the same contract that tells whether the venue would execute an order that may wait; nil
	// for everything else.
	rehearsal []byte
}

// verdict is what a stage decided. The zero verdict lets the task go on.
type verdict struct {
	kind    decision
	outcome job.Outcome // of ended
	reason  string
	// premature: the venue would do it, or do it well, a little later
	premature bool
	pause     time.Duration // for how long a task that waits or yields is passed over; 0 = the usual pause
	// heads is for how many heads a task that waits is passed over, in place of a time; 0 = by time.
	heads uint64
	news  <-chan struct{} // ends the wait when it is closed; nil = nothing does
}

type decision int

const (
	onward   decision = iota
	waiting           // not now; other tasks may go first
	yielding          // not ours now, for however long it takes; other tasks may go first
	closed            // nothing can be sent now, whatever the task
	ended             // never; the arm ends here, without a nonce
)

func wait(reason string) verdict { return verdict{kind: waiting, reason: reason} }
func shut(reason string) verdict { return verdict{kind: closed, reason: reason} }
func end(o job.Outcome, reason string) verdict {
	return verdict{kind: ended, outcome: o, reason: reason}
}
