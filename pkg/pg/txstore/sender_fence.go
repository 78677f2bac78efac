package txstore

import (
	"context"
	"fmt"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// fenceHeld is how every write under a fence begins, but for the claim: its arguments $1, $2 and $3 are the fence's. It
// locks the lease row in the statement that writes. Without the lock a stale owner's write could pass while the lease
// moves on; the token decides, the clock only decides when to give up.
const fenceHeld = `held AS (SELECT 1 AS one FROM keeper.signer_lease
	WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp() FOR SHARE)`

// The conditions of states as they stand in SQL, word for word as in the partial indexes. A test holds them against
// txm.
const (
	inFlightStates = `('SIGNED', 'SENT', 'MINED')`
	liveStates     = `('QUEUED', 'SIGNED', 'SENT', 'MINED')`
)

// txsOf joins the transactions a of an intent to the intent's row, by the number they share: that is what they are
// indexed by. An intent without a number has none.
func txsOf(intent string) string {
	return fmt.Sprintf("a.signer = %[1]s.signer AND a.nonce = %[1]s.nonce AND a.intent = %[1]s.id", intent)
}

// fenced runs a statement that begins with fenceHeld and returns how many lease rows were held and how many rows were
// changed.
func fenced(ctx context.Context, db *pg.DB, op string, f lease.Fence, s *pg.Statement, args ...any) error {
	return fencedInto(ctx, db, op, f, s, args)
}

// fencedInto is fenced for a statement that returns more columns after the two.
func fencedInto(ctx context.Context, db *pg.DB, op string, f lease.Fence, s *pg.Statement, args []any,
	more ...any) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	var held, changed int
	args = append([]any{f.Signer[:], f.Owner, f.Token}, args...)
	if err := db.Pool().QueryRow(ctx, s.SQL(), args...).Scan(append([]any{&held, &changed}, more...)...); err != nil {
		return fmt.Errorf("%s for signer %s: %w", op, f.Signer, err)
	}
	switch {
	case held == 0:
		return &lease.LostError{Fence: f, Op: op}
	case changed == 0:
		return &txm.RefusedError{Op: op, Why: txm.Moved}
	}
	return nil
}

// predecessors are the states from which an intent may come to a state, as a parameter.
func predecessors(s txm.State) []string {
	before := s.From()
	from := make([]string, len(before))
	for i, b := range before {
		from[i] = string(b)
	}
	return from
}
