package txstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

// Signers is what operators see of signers, and may do to them without holding their lease.
//
// Guaranteed: nothing here touches a lease or a number, and of an intent nothing but the wish to call it off, so that
// it disturbs no sender. Not guaranteed: what is shown is of the moment it was read.
type Signers struct{ db *pg.DB }

// NewSigners returns the operators' view of signers.
func NewSigners(db *pg.DB) Signers { return Signers{db} }

var (
	// What lives is counted in one pass, by the index of live attempts: a count for each signer took that pass twice a
	// signer.
	listSigners = pg.Register("list signers",
		`SELECT s.signer, s.chain_id, coalesce(s.paused_reason, ''), l.owner_label, l.fencing_token, l.next_nonce,
			(extract(epoch FROM greatest(l.expires_at, here.now) - here.now) * 1000000)::bigint,
			(extract(epoch FROM greatest(l.updated_at, here.now) - here.now) * 1000000)::bigint,
			coalesce(n.queued, 0), coalesce(n.in_flight, 0),
			CASE WHEN s.unable_until > here.now THEN s.unable ELSE '' END, `+pg.SignerUnheld+`
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
	// External transactions below the number of the last resync are known to have been there.
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
				FROM keeper.signed_tx m WHERE m.signer = l.signer AND m.nonce = n.n) AS made
		WHERE l.signer = $1 ORDER BY n.n LIMIT $3`)
)

// SignerStatus is the state of a signer.
type SignerStatus struct {
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
	Unable           string // why its holder cannot sign, as it last said; empty while it can
	Unheld           bool   // nobody who has its key works it; see [pg.OutSigners]
}

// Out is why the signer can sign nothing, empty while it can. What waits for it goes to another one of its lane.
func (s SignerStatus) Out() string {
	switch {
	case s.Unheld:
		return fmt.Sprintf("no process that has its key works it, last %s: start one, or, if the key is lost, "+
			"`keeperctl signer write-off %s` (%d queued, %d in flight)", s.Owner, s.Signer, s.Queued, s.InFlight)
	case s.Paused != "":
		return "paused: " + s.Paused
	}
	return s.Unable
}

// List returns every signer the database knows, by address.
func (s Signers) List(ctx context.Context) ([]SignerStatus, error) {
	return pg.List(ctx, s.db, "listing signers", pg.Columns(func(one *SignerStatus) []any {
		return []any{pg.Fixed(one.Signer[:]), &one.ChainID, &one.Paused, &one.Owner, &one.Token, &one.NextNonce,
			pg.Microseconds(&one.LeaseLeft), pg.Microseconds(&one.LeaseAhead), &one.Queued, &one.InFlight,
			pg.Text(&one.Unable), &one.Unheld}
	}), listSigners.SQL())
}

// Pause keeps a signer from claiming anything new, until it is resumed; what it has in flight goes on. A claim that is
// being made at this moment is still made. A signer that is paused already stays so for its first reason, which is
// returned.
func (s Signers) Pause(ctx context.Context, signer chain.Address, reason string) (already string, err error) {
	already, err = pg.One(ctx, s.db, fmt.Sprintf("pausing signer %s", signer), pgx.RowTo[string], pauseByHand.SQL(),
		signer[:], reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", unknownSigner(signer)
	}
	return already, err
}

// Resume lets a paused signer claim again and returns why it was paused, empty if it was not. It is refused where only
// a resync helps: after the database has gone back in time (see nonce.Behind), and after a stranger's transaction has
// spent a number of the signer.
func (s Signers) Resume(ctx context.Context, signer chain.Address) (was string, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var foreign int64
		err := tx.QueryRow(ctx, lockPause.SQL(), signer[:]).Scan(&was, &foreign)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return unknownSigner(signer)
		case err != nil || was == "":
			return err
		case foreign >= 0:
			return pg.Refusef("nonce %d was written off, or spent by a transaction that is not ours: find out who "+
				"else has the key of %s, then run `keeperctl signer resync %s`",
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

var noteEvent = pg.Register("note of a signer", `INSERT INTO keeper.signer_event (signer, token, what, detail)
	SELECT signer, fencing_token, $2, $3 FROM keeper.signer_lease WHERE signer = $1`)

// Note adds to a signer's record what an operator did.
func (s Signers) Note(ctx context.Context, signer chain.Address, what, detail string) error {
	_, err := s.db.Run(ctx, fmt.Sprintf("recording %s of signer %s", what, signer), noteEvent.SQL(), signer[:], what,
		pg.Escape(detail))
	return err
}

func unknownSigner(signer chain.Address) error {
	return pg.Refusef("signer %s is not known here: a sender makes it known when it starts with its key (keeperctl "+
		"signer list shows those that are)", signer)
}

// NumberStatus is the state of one nonce of a signer.
type NumberStatus struct {
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
func (s Signers) Numbers(ctx context.Context, signer chain.Address, from uint64, limit int) ([]NumberStatus,
	error) {
	doing := fmt.Sprintf("listing the numbers of signer %s", signer)
	return pg.List(ctx, s.db, doing, pg.Columns(func(n *NumberStatus) []any {
		return []any{&n.Nonce, &n.State, pg.Text(&n.JobID), &n.Intent, pg.Microseconds(&n.Age), &n.Attempts,
			&n.LastClass}
	}), listNumbers.SQL(), signer[:], from, limit)
}

var (
	callOff = pg.Register("call off", `WITH wished AS (
			UPDATE keeper.tx_intent t SET called_off = $3, updated_at = clock_timestamp()
			WHERE t.signer = $1 AND t.nonce = $2 AND t.state = ANY ($4) AND t.called_off IS NULL
				AND t.cancel_outcome IS NULL
			RETURNING t.signer, t.nonce, t.job_id, t.attempt
		), told AS (
			INSERT INTO keeper.signer_event (signer, token, what, detail)
			SELECT w.signer, l.fencing_token, 'called_off', 'nonce ' || w.nonce || ', attempt ' || w.attempt ||
				' of ' || w.job_id || ': ' || $3
			FROM wished w JOIN keeper.signer_lease l ON l.signer = w.signer)
		SELECT (SELECT count(*) FROM wished)`)
	// Why nothing was called off: read afterwards, so it explains and decides nothing.
	whyNotCalledOff = pg.Register("why not called off",
		`SELECT state, coalesce(called_off, ''), coalesce(cancel_reason, '') FROM keeper.tx_intent
		WHERE signer = $1 AND nonce = $2 ORDER BY id DESC LIMIT 1`)
)

// CallOff notes that an operator wants a signer's number back, and on the signer's record who and why. Whoever has the
// lease then gives the number to a payment to oneself; which of the two is mined the chain decides. It is refused where
// the number is not in flight, or is being freed already.
func (s Signers) CallOff(ctx context.Context, signer chain.Address, nonce uint64, who, why string) error {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	var wished int
	wish := fmt.Sprintf("called off by %s: %s", who, why)
	if err := s.db.Pool().QueryRow(ctx, callOff.SQL(), signer[:], nonce, pg.Escape(wish), replaceable()).
		Scan(&wished); err != nil {
		return fmt.Errorf("calling off nonce %d of signer %s: %w", nonce, signer, err)
	}
	if wished > 0 {
		return nil
	}
	return s.whyNotCalledOff(ctx, signer, nonce)
}

func (s Signers) whyNotCalledOff(ctx context.Context, signer chain.Address, nonce uint64) error {
	var state txm.State
	var before, leaving string
	err := s.db.Pool().QueryRow(ctx, whyNotCalledOff.SQL(), signer[:], nonce).Scan(&state, &before, &leaving)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return pg.Refusef("nonce %d of signer %s was given to no job (keeperctl signer nonces %s)", nonce, signer,
			signer)
	case err != nil:
		return fmt.Errorf("asking why nonce %d of signer %s was not called off: %w", nonce, signer, err)
	case state == txm.Mined:
		return pg.Refusef("the transaction at nonce %d of signer %s is in a block: there is nothing left to call off",
			nonce, signer)
	case state.Terminal():
		return pg.Refusef("nonce %d of signer %s is not in flight: its attempt ended as %s", nonce, signer, state)
	case leaving != "":
		return pg.Refusef("nonce %d of signer %s is being freed already: %s", nonce, signer, leaving)
	}
	return pg.Refusef("nonce %d of signer %s is waiting for its sender already: %s", nonce, signer, before)
}
