package delayed

import (
	"context"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// Expiry is the name of the kind that looks at an order or request when its time is over.
const Expiry = "request_expiry"

// Expiring is the payload of a request's expiry.
type Expiring struct {
	What    string        `json:"what"` // kind of the request, or "order"
	Key     chain.Hash    `json:"key"`
	Account chain.Address `json:"account"`
}

// Expiries is the kind that marks an order or request nobody executed before the venue stopped accepting reports for
// it: its user has been left to cancel it. That is never routine, so it is logged.
type Expiries struct{ Log zerolog.Logger }

// Name implements Kind.
func (Expiries) Name() string { return Expiry }

// Do implements Kind.
func (e Expiries) Do(ctx context.Context, tx Tx, j Job) (any, error) {
	var r Expiring
	if err := j.Read(&r); err != nil {
		return nil, err
	}
	waits, err := tx.Waiting(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	if !waits {
		return comment("closed in time"), nil
	}
	e.Log.Error().Str("what", r.What).Stringer("key", r.Key).Stringer("account", r.Account).
		Msg("expired without having been executed")
	return comment("expired"), nil
}
