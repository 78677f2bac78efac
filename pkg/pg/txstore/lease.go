package txstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
)

// Leases is the lease.Store.
type Leases struct {
	db       *pg.DB
	absences *lease.Absences
}

// NewLeases returns the store of leases. Who waits for one asks the same store again.
func NewLeases(db *pg.DB) Leases { return Leases{db, new(lease.Absences)} }

// writtenAhead is by how many microseconds a lease was last written ahead of the database's clock. Only a clock that
// has gone back makes it more than 0.
const writtenAhead = `greatest(0, (extract(epoch FROM updated_at - clock_timestamp()) * 1000000)::bigint)`

var (
	// A signer that is known keeps the database it was last known whole in.
	registerSigner = pg.Register("register signer",
		`INSERT INTO keeper.signer AS s (signer, chain_id, system_identifier, timeline)
		SELECT $1, $2, `+thisDatabase+`
		ON CONFLICT (signer) DO UPDATE SET updated_at = s.updated_at, system_identifier =
			coalesce(s.system_identifier, excluded.system_identifier),
			timeline = coalesce(s.timeline, excluded.timeline)
		RETURNING chain_id`)
	createLease = pg.Register("create lease", `INSERT INTO keeper.signer_lease
		(signer, owner, owner_label, fencing_token, next_nonce, acquired_at, expires_at, updated_at)
		VALUES ($1, $2, 'nobody', 0, 0, '-infinity', '-infinity', clock_timestamp()) ON CONFLICT (signer) DO NOTHING`)

	// The condition stands in WHERE, so that a loser neither writes nor locks. Whoever waits for the row judges it anew
	// afterwards: that is why it is clock_timestamp(), which moves within a statement, and not now(), which does not.
	acquireLease = pg.Register("acquire lease", `WITH won AS (
		UPDATE keeper.signer_lease SET
			fencing_token = CASE WHEN owner = $2 AND expires_at > clock_timestamp() THEN fencing_token
				ELSE fencing_token + 1 END,
			acquired_at = CASE WHEN owner = $2 AND expires_at > clock_timestamp() THEN acquired_at
				ELSE clock_timestamp() END,
			owner = $2, owner_label = $3, expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond',
			updated_at = clock_timestamp(), present = CASE WHEN `+present("$2::uuid")+` THEN $2::uuid END
		WHERE signer = $1 AND (owner = $2 OR expires_at <= clock_timestamp())
		RETURNING owner, owner_label, fencing_token, updated_at)
		SELECT true, owner_label, fencing_token, 0, false, owner, updated_at FROM won
		UNION ALL
		SELECT false, owner_label, fencing_token, `+writtenAhead+`,
			`+holderGone+`, owner, updated_at
			FROM keeper.signer_lease WHERE signer = $1 AND NOT EXISTS (SELECT FROM won)`)
	// In another database than the signer's, such as a standby promoted meanwhile, no lease term lives on: the next
	// one compares the database with the chain. A signer that is paused does not come so far.
	renewLease = pg.Register("renew lease", `UPDATE keeper.signer_lease SET
			expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond', updated_at = clock_timestamp(),
			present = CASE WHEN `+present("$2::uuid")+` THEN $2::uuid END
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp() AND EXISTS (
			SELECT FROM keeper.signer WHERE signer = $1 AND (paused_reason IS NOT NULL
				OR (system_identifier, timeline) = (SELECT `+thisDatabase+`)))`)
	releaseLease = pg.Register("release lease",
		`UPDATE keeper.signer_lease SET expires_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp()`)
)

// Register makes a signer known, with a lease that nobody holds. A signer that is known already is left as it is; one
// that is known for another chain is an error. Whether its rows come from another database, or from an earlier time of
// this one, TakeOver finds.
func (s Leases) Register(ctx context.Context, signer chain.Address, chainID uint64) error {
	return s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var known uint64
		if err := tx.QueryRow(ctx, registerSigner.SQL(), signer[:], chainID).Scan(&known); err != nil {
			return fmt.Errorf("registering signer %s: %w", signer, err)
		}
		if known != chainID {
			return pg.Refusef("signer %s belongs to chain %d in this database, not to %d (every keeper has a database "+
				"of its own)", signer, known, chainID)
		}
		if _, err := tx.Exec(ctx, createLease.SQL(), signer[:], uuid.Nil); err != nil {
			return fmt.Errorf("creating the lease of signer %s: %w", signer, err)
		}
		return nil
	})
}

// Acquire implements lease.Store.
func (s Leases) Acquire(ctx context.Context, signer chain.Address, owner lease.Owner, ttl time.Duration) (lease.Fence,
	error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	var won bool
	var seen lease.Sighting
	held := &lease.HeldError{Signer: signer}
	err := s.db.Pool().QueryRow(ctx, acquireLease.SQL(), signer[:], owner.ID, owner.Label, ttl.Microseconds()).
		Scan(&won, &held.Holder, &seen.Token, pg.Microseconds(&held.Ahead), &held.Gone, &seen.Owner, &seen.Written)
	switch held.Token = seen.Token; {
	case errors.Is(err, pgx.ErrNoRows):
		return lease.Fence{}, fmt.Errorf("signer %s is not registered", signer)
	case err != nil:
		return lease.Fence{}, fmt.Errorf("asking for the lease: %w", err)
	case held.Gone:
		return s.succeed(ctx, held, seen, owner, ttl)
	}
	if s.absences.End(signer); !won {
		return lease.Fence{}, held
	}
	return lease.Fence{Signer: signer, Owner: owner.ID, Token: seen.Token}, nil
}

// Renew implements lease.Store.
func (s Leases) Renew(ctx context.Context, f lease.Fence, ttl time.Duration) error {
	rows, err := s.db.Run(ctx, fmt.Sprintf("renewing the lease of %s", f.Signer), renewLease.SQL(), f.Signer[:],
		f.Owner, f.Token, ttl.Microseconds())
	if err == nil && rows == 0 {
		return &lease.LostError{Fence: f, Op: "renew"}
	}
	return err
}

// Release implements lease.Store.
func (s Leases) Release(ctx context.Context, f lease.Fence) error {
	_, err := s.db.Run(ctx, fmt.Sprintf("ending the lease of %s", f.Signer), releaseLease.SQL(), f.Signer[:], f.Owner,
		f.Token)
	return err
}

var (
	leaseStatus = pg.Register("status of a lease", `SELECT owner, owner_label, fencing_token,
			(extract(epoch FROM greatest(expires_at, here.now) - here.now) * 1000000)::bigint,
			(extract(epoch FROM here.now - updated_at) * 1000000)::bigint
		FROM keeper.signer_lease, (SELECT clock_timestamp()) AS here (now) WHERE signer = $1`)
	breakLease = pg.Register("break lease", `UPDATE keeper.signer_lease SET owner = $4, owner_label = $5,
			fencing_token = fencing_token + 1, expires_at = '-infinity', updated_at = clock_timestamp()
		WHERE signer = $1 AND owner = $2 AND fencing_token = $3 AND expires_at > clock_timestamp()
		RETURNING fencing_token`)
)

// LeaseStatus is the state of a signer's lease, by the database's clock.
type LeaseStatus struct {
	Signer chain.Address
	Owner  uuid.UUID // the process that has it, or had it last
	Label  string    // that process's name, for people
	Token  int64
	Left   time.Duration // until it ends by itself; 0 where nobody has it
	// Written is how long ago the owner last renewed it or wrote under it; negative where the clock has gone back
	// since.
	Written time.Duration
}

// Status returns how the lease of a signer stands.
func (s Leases) Status(ctx context.Context, signer chain.Address) (LeaseStatus, error) {
	doing := fmt.Sprintf("reading the lease of signer %s", signer)
	at, err := pg.One(ctx, s.db, doing, pg.Columns(func(at *LeaseStatus) []any {
		return []any{&at.Owner, &at.Label, &at.Token, pg.Microseconds(&at.Left), pg.Microseconds(&at.Written)}
	}), leaseStatus.SQL(), signer[:])
	at.Signer = signer
	if errors.Is(err, pgx.ErrNoRows) {
		err = unknownSigner(signer)
	}
	return at, err
}

// Break ends the lease term that was seen, whoever has it and however long it would last, and returns the token that is
// above it: whatever its owner still writes under its own is refused. Who asked for it is recorded with the signer's
// events. It is refused where nobody has the lease, or another lease term has begun since.
func (s Leases) Break(ctx context.Context, seen LeaseStatus, by string) (token int64, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
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
