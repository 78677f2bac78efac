package delayed

import (
	"context"
	"encoding/json"
	"time"

	"perpkeeper/pkg/chain"
)

// Store keeps the rows of delayed jobs.
type Store interface {
	// Due lists rows that are due (pending, not deleted, next try not after until), by (NextAt, ID) and after the given
	// place, at most limit of them. A zero until means now. The list locks nothing: Work looks again.
	Due(ctx context.Context, until time.Time, after Place, limit int) (Page, error)
	// Work opens a transaction, locks the row and calls do with it, unless the row is locked by somebody else, has
	// another version, or is no longer due: then taken is false. The ruling is written and committed together with what
	// do did, or, where the ruling has an error, instead of it. An error of Work says that nothing is known to be
	// written.
	Work(ctx context.Context, row Place, do func(context.Context, Tx, Job) Ruling) (taken bool, err error)
	// Close notes the end of a scan and returns what is parked, late, and due next.
	Close(ctx context.Context, scanner string, s Summary) (Outlook, error)
}

// Place is a row in the order of the scan, as it was when it was listed.
type Place struct {
	NextAt  time.Time
	ID      int64
	Version int64
}

// Page is a part of what is due.
type Page struct {
	Until time.Time
	Rows  []Place
}

// Ruling is the new state of a job after an attempt.
type Ruling struct {
	Status Status
	Result json.RawMessage
	// Err is why the attempt failed; nil exactly for Done.
	Err error
	// Again is how long a failed job waits for the next attempt.
	Again time.Duration
}

// Summary is the outcome of a scan.
type Summary struct {
	// Found counts due rows listed; some may have been taken by other scanners.
	Found, Done, Failed, Parked int
	BeganAt, EndedAt            time.Time // the database's; BeganAt is zero when the scan never reached it
	Err                         error
}

// Outlook is the backlog after a scan: what is parked, late and due next.
type Outlook struct {
	// Parked counts parked jobs by kind.
	Parked map[string]int
	// Late is for how long the oldest job that is still due has been due, 0 for none.
	Late time.Duration
	// Next is how long it takes until another row falls due; negative for never.
	Next time.Duration
}

// Tx is the transaction of one row: what kinds may do in it. Nothing of it stays unless the job is done.
type Tx interface {
	// Release moves wei from the agent's frozen balance to its balance. The source names the commission. A frozen
	// balance that is too small, an unknown agent and a source that was released before are anomalies.
	Release(ctx context.Context, agent string, amount chain.Uint, source string) error
	// Waiting reports whether an order or request is pending in the active generation.
	Waiting(ctx context.Context, key chain.Hash) (bool, error)
	// Day counts from midnight to midnight UTC.
	Day(ctx context.Context, day time.Time) (Day, error)
}
