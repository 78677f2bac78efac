package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

// Signers is what operators see of signers, and may do to them without holding their lease.
//
// Guaranteed: nothing here touches a lease or a number, and of an intent nothing but the wish to call it off, so that
// it disturbs no sender. Not guaranteed: what is shown is of the moment it was read.
type Signers struct{ db *pg.DB }

// NewSigners returns the operators' view of signers.
func NewSigners(db *pg.DB) Signers { return Signers{db} }

var (
	// What lives is counted in one pass, by the index of live arms: a count for each signer took that pass twice a
	// signer.
	listSigners = pg.Register("list signers",
		`SELECT s.signer, s.chain_id, coalesce(s.paused_reason, ''), l.owner_label, l.fencing_token, l.next_nonce,
			(extract(epoch FROM greatest(l.expires_at, here.now) - here.now) * 1000000)::bigint,
			(extract(epoch FROM greatest(l.updated_at, here.now) - here.now) * 1000000)::bigint,
			coalesce(n.queued, 0), coalesce(n.in_flight, 0)
		FROM keeper.signer s JOIN keeper.signer_lease l ON l.signer = s.signer
			LEFT JOIN (SELECT t.signer, count(*) FILTER (WHERE t.state = 'QUEUED') AS queued,
					count(*) FILTER (WHERE t.state <> 'QUEUED') AS in_flight
				FROM keeper.tx_intent t WHERE t.state IN `+liveStates+` GROUP BY t.signer) n ON n.signer = s.signer
			CROSS JOIN (SELECT clock_timestamp()) AS here (now)
		ORDER BY s.signer`)
	pauseByHand = pg.Register("pause signer by hand", `WITH paused AS (
			UPDATE keeper.signer SET paused_reason = $2, updated_at = clock_timestamp() WHERE signer = $1
				AND paused_reason IS NULL RETURNING signer
		), told AS (
			INSERT INTO keeper.signer_event (signer, token, what, detail)
			SELECT p.signer, l.fencing_token, 'paused', $2 FROM paused p JOIN keeper.signer_lease l
				ON l.signer = p.signer)
		SELECT coalesce(paused_reason, '') FROM keeper.signer WHERE signer = $1`)
	// Strangers below the number of the last resync are known to have been there.
	lockPause = pg.Register("lock pause", `SELECT coalesce(s.paused_reason, ''), coalesce((
			SELECT min(t.nonce) FROM keeper.tx_intent t WHERE t.signer = s.signer AND t.state = 'FOREIGN'
				AND t.nonce >= s.expected_below), -1)
		FROM keeper.signer s WHERE s.signer = $1 FOR UPDATE OF s`)
	resumeByHand = pg.Register("resume signer by hand", `WITH resumed AS (
			UPDATE keeper.signer SET paused_reason = NULL, updated_at = clock_timestamp() WHERE signer = $1
				RETURNING signer)
		INSERT INTO keeper.signer_event (signer, token, what, detail)
		SELECT r.signer, l.fencing_token, 'resumed', $2 FROM resumed r JOIN keeper.signer_lease l
			ON l.signer = r.signer`)
	listNumbers = pg.Register("list numbers",
		`SELECT n.n, coalesce(a.state, CASE WHEN n.n < `+archivedBelow+
			` THEN 'CONSUMED' END, ''), coalesce(t.job_id, ''), coalesce(t.state, ''),
			(extract(epoch FROM clock_timestamp() - coalesce(a.updated_at, l.updated_at)) * 1000000)::bigint,
				made.attempts, coalesce(made.newest, '')
		FROM keeper.signer_lease l CROSS JOIN LATERAL generate_series($2::bigint, l.next_nonce - 1) AS n (n)
			LEFT JOIN keeper.signer_nonce_allocation a ON a.signer = l.signer AND a.nonce = n.n
			LEFT JOIN keeper.tx_intent t ON t.id = a.intent
			CROSS JOIN LATERAL (SELECT count(*) AS attempts, (array_agg(last_class ORDER BY seq DESC))[1] AS newest
				FROM keeper.tx_attempt m WHERE m.signer = l.signer AND m.nonce = n.n) AS made
		WHERE l.signer = $1 ORDER BY n.n LIMIT $3`)
)

// SignerStanding is how a signer stands.
type SignerStanding struct {
	Signer  chain.Address
	ChainID uint64
	Paused  string // why it claims nothing new; empty while it works
	// Owner is the label of the process that has its lease, or had it last, and LeaseLeft for how long it still does; 0
	// if nobody has it.
	Owner     string
	LeaseLeft time.Duration
	// LeaseAhead is how far ahead of the database's clock the lease was last written: the clock has gone back since.
	LeaseAhead time.Duration
	Token      int64
	NextNonce  uint64 // the lowest number that was never given
	// Queued and InFlight count intents.
	Queued, InFlight int
}

// List returns every signer the database knows, by address.
func (s Signers) List(ctx context.Context) (all []SignerStanding, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, listSigners.SQL())
	if err != nil {
		return nil, fmt.Errorf("listing signers: %w", err)
	}
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one SignerStanding, err error) {
		var address []byte
		var left, ahead int64
		err = row.Scan(&address, &one.ChainID, &one.Paused, &one.Owner, &one.Token, &one.NextNonce, &left, &ahead,
			&one.Queued, &one.InFlight)
		one.Signer, one.LeaseLeft = pg.AddressOf(address), time.Duration(left)*time.Microsecond
		one.LeaseAhead = time.Duration(ahead) * time.Microsecond
		return one, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing signers: %w", err)
	}
	return all, nil
}

// Pause keeps a signer from claiming anything new, until it is resumed; what it has in flight goes on. A claim that is
// being made at this moment is still made. A signer that is paused already stays so for its first reason, which is
// returned.
func (s Signers) Pause(ctx context.Context, signer chain.Address, reason string) (already string, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	err = s.db.Pool().QueryRow(ctx, pauseByHand.SQL(), signer[:], reason).Scan(&already)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", unknownSigner(signer)
	}
	if err != nil {
		return "", fmt.Errorf("pausing signer %s: %w", signer, err)
	}
	return already, nil
}

// Resume lets a paused signer claim again and returns why it was paused, empty if it was not. It is refused where only
// a resync helps: after the database has gone back in time (nonce.Behind tells), and after a stranger's transaction has
// spent a number of the signer.
func (s Signers) Resume(ctx context.Context, signer chain.Address) (was string, err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.db.Pool(), func(tx pgx.Tx) error {
		var foreign int64
		err := tx.QueryRow(ctx, lockPause.SQL(), signer[:]).Scan(&was, &foreign)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return unknownSigner(signer)
		case err != nil || was == "":
			return err
		case foreign >= 0:
			return pg.Refusef("nonce %d was spent by a transaction that is not ours: find out who else has the key of "+
				"%s, then run `keeperctl signer resync %s`",
				foreign, signer, signer)
		}
		if err := checkIdentity(ctx, tx, signer); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, resumeByHand.SQL(), signer[:], "was paused: "+was)
		return err
	})
	if err != nil && !pg.Refused(err) && !nonce.Behind(err) {
		err = fmt.Errorf("resuming signer %s: %w", signer, err)
	}
	return was, err
}

func unknownSigner(signer chain.Address) error {
	return pg.Refusef("signer %s is not known here: a sender makes it known when it starts with its key (keeperctl "+
		"signer list shows those that are)", signer)
}

// NumberStanding is what became of one number of a signer.
type NumberStanding struct {
	Nonce uint64
	State nonce.State // empty if nobody was ever given the number
	// JobID and Intent are those of the intent it was last given to; empty where that is archived.
	JobID  string
	Intent txm.State
	// Attempts counts the transactions that were signed with it, and LastClass is what the newest was last answered
	// with.
	Attempts  int
	LastClass string
	Age       time.Duration // since the last change
}

// Numbers returns what became of a signer's numbers, from one on up to the cursor, at most so many.
func (s Signers) Numbers(ctx context.Context, signer chain.Address, from uint64, limit int) (numbers []NumberStanding,
	err error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, listNumbers.SQL(), signer[:], from, limit)
	if err != nil {
		return nil, fmt.Errorf("listing the numbers of signer %s: %w", signer, err)
	}
	numbers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n NumberStanding, err error) {
		var id string
		var age int64
		if err := row.Scan(&n.Nonce, &n.State, &id, &n.Intent, &age, &n.Attempts, &n.LastClass); err != nil {
			return n, err
		}
		n.Age = time.Duration(age) * time.Microsecond
		n.JobID, err = pg.Unescape(id)
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the numbers of signer %s: %w", signer, err)
	}
	return numbers, nil
}
