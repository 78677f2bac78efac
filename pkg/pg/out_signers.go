package pg

import (
	"context"

	"perpkeeper/pkg/chain"
)

// OutSigners are, as a subquery, the signers that can sign nothing now: paused, unable as their holder says, or without
// a holder. A holder that lives writes its lease at a third of its time; who is late by 3 s, or has given it back for
// as long, is not there.
const OutSigners = `(SELECT s.signer FROM keeper.signer s JOIN keeper.signer_lease l ON l.signer = s.signer
	WHERE s.paused_reason IS NOT NULL OR s.unable_until > clock_timestamp() OR ` + SignerUnheld + `)`

// SignerUnheld says of a row l of a lease that nobody works its signer.
const SignerUnheld = `clock_timestamp() > l.updated_at + (greatest(l.expires_at, l.updated_at) - l.updated_at) / 3
	+ interval '3 seconds'`

var selectOut = Register("out signers", `SELECT signer FROM `+OutSigners+` AS o (signer) ORDER BY signer`)

// OutSigners lists the signers that can sign nothing now: paused, unable as their holder says, or without a holder.
// What is queued for them is another signer's to do.
func (db *DB) OutSigners(ctx context.Context) ([]chain.Address, error) {
	return List(ctx, db, "asking which signers are out", Columns(func(a *chain.Address) []any {
		return []any{Fixed(a[:])}
	}), selectOut.SQL())
}
