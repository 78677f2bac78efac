package outbox

import (
	"context"

	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/pg"
)

// minedBelow moves the number below which a signer's transactions are mined. The liquidations below it give their slots
// back; those from it on that have none, as a reorg has taken their block, get one beyond what a claim may take, where
// none is left to collide with: the keeper's limit counts it all the same. Two intents in flight are never so many
// numbers apart that they would get the same one.
var minedBelow = pg.Register("mined below", `WITH moved AS (
		UPDATE keeper.signer_lease l SET mined_nonce = $4, updated_at = clock_timestamp()
		WHERE l.signer = $1 AND l.owner = $2 AND l.fencing_token = $3 AND l.expires_at > clock_timestamp()
		RETURNING l.signer
	), freed AS (
		UPDATE keeper.tx_intent t SET slot = NULL, updated_at = clock_timestamp() FROM moved
		WHERE t.signer = moved.signer AND t.state IN `+inFlightStates+` AND t.nonce < $4 AND t.slot IS NOT NULL
	), counted AS (
		UPDATE keeper.tx_intent t SET slot = `+beyondSlots+` + t.id % `+beyondSlots+`, updated_at = clock_timestamp()
		FROM moved
		WHERE t.signer = moved.signer AND t.state IN `+inFlightStates+` AND t.nonce >= $4 AND t.slot IS NULL
			AND t.kind = 'liquidation'
	)
	SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM moved)`)

// beyondSlots is above any number of liquidations that can be configured, and half of what a slot can be.
const beyondSlots = `16000`

// MinedBelow implements txm.Flights.
func (s Intents) MinedBelow(ctx context.Context, f lease.Fence, number uint64) error {
	return fenced(ctx, s.db, "mined_below", f, minedBelow, number)
}
