package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
)

var (
	leaseStanding = pg.Register("standing of a lease", `SELECT owner, owner_label, fencing_token,
			(extract(epoch FROM greatest(expires_at, here.now) - here.now) * 1000000)::bigint,
			(extract(epoch FROM here.now - updated_at) * 1000000)::bigint
		FROM keeper.signer_lease, (SELECT clock_timestamp()) AS here (now) WHERE signer = $1`)
	breakLease = pg.Register("break lease", `UPDATE keeper.signer_lease SET owner = $4, owner_label = $5,
			fencing_token = fencing_token + 1, expires_at = '-infinity', updated_at = clock_timestamp()
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp()
		RETURNING fencing_token`)
)

// LeaseStanding is how the lease of a signer stands, by the database's clock.
type LeaseStanding struct {
	Signer chain.Address
	Owner  uuid.UUID // the process that has it, or had it last
	Label  string    // that process's name, for people
	Token  int64
	Left   time.Duration // until it ends by itself; 0 where nobody has it
	// Written is how long ago the owner last renewed it or wrote under it; negative where the clock has gone back
	// since.
	Written time.Duration
}

// Standing tells how the lease of a signer stands.
func (s Leases) Standing(ctx context.Context, signer chain.Address) (LeaseStanding, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	at := LeaseStanding{Signer: signer}
	var left, written int64
	err := s.db.Pool().QueryRow(ctx, leaseStanding.SQL(), signer[:]).
		Scan(&at.Owner, &at.Label, &at.Token, &left, &written)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, unknownSigner(signer)
	}
	if err != nil {
		return at, fmt.Errorf("reading the lease of signer %s: %w", signer, err)
	}
	at.Left, at.Written = time.Duration(left)*time.Microsecond, time.Duration(written)*time.Microsecond
	return at, nil
}

// Break ends the tenure that was seen, whoever has it and however long it would last, and returns the token that is
// above it: whatever its owner still writes under its own is refused. Who asked for it is recorded with the signer's
// events. It is refused where nobody has the lease, or another tenure has begun since.
func (s Leases) Break(ctx context.Context, seen LeaseStanding, by string) (token int64, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.db.Pool(), func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, breakLease.SQL(), seen.Signer[:], seen.Owner, seen.Token, uuid.Nil, "broken by "+by).
			Scan(&token)
		if errors.Is(err, pgx.ErrNoRows) {
			return pg.Refusef("the lease of signer %s is no longer held by %s under token %d: nothing was changed",
				seen.Signer, seen.Label, seen.Token)
		}
		if err != nil {
			return err
		}
		detail := fmt.Sprintf("by %s: was held by %s (%s) under token %d, %s left, written %s ago", by, seen.Label,
			seen.Owner, seen.Token, seen.Left, seen.Written)
		_, err = tx.Exec(ctx, insertEvent.SQL(), seen.Signer[:], token, "lease_broken", detail)
		return err
	})
	if err != nil && !pg.Refused(err) {
		err = fmt.Errorf("breaking the lease of signer %s: %w", seen.Signer, err)
	}
	return token, err
}
