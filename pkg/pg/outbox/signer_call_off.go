package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

var (
	callOff = pg.Register("call off", `WITH wished AS (
			UPDATE keeper.tx_intent t SET called_off = $3, updated_at = clock_timestamp()
			WHERE t.signer = $1 AND t.nonce = $2 AND t.state = ANY ($4) AND t.called_off IS NULL
				AND t.cancel_outcome IS NULL
			RETURNING t.signer, t.nonce, t.job_id, t.arm
		), told AS (
			INSERT INTO keeper.signer_event (signer, token, what, detail)
			SELECT w.signer, l.fencing_token, 'called_off', 'nonce ' || w.nonce || ', arm ' || w.arm || ' of ' ||
				w.job_id || ': ' || $3
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
		return pg.Refusef("nonce %d of signer %s is not in flight: its arm ended as %s", nonce, signer, state)
	case leaving != "":
		return pg.Refusef("nonce %d of signer %s is being freed already: %s", nonce, signer, leaving)
	}
	return pg.Refusef("nonce %d of signer %s is waiting for its sender already: %s", nonce, signer, before)
}
