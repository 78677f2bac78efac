package sender

import (
	"context"
	"testing"

	"perpkeeper/pkg/setting/secret"
)

// A sender that has lost nothing by a promotion, not even a connection, notices it all the same, and takes the database
// for its own by itself; its next start, at whatever time, is like any other.
func TestPromotionIsNoticedByWhoeverRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	s.mustExecute(by, start)

	const promote = `UPDATE keeper.signer SET timeline = timeline - 1 RETURNING timeline + 1`
	var here int32
	if err := s.db.Pool().QueryRow(t.Context(), promote).Scan(&here); err != nil {
		t.Fatal(err)
	}
	s.eventually("the database is the signer's own", func(ctx context.Context) bool {
		var is bool
		err := s.db.Pool().QueryRow(ctx, `SELECT bool_and(timeline = $1) FROM keeper.signer`, here).Scan(&is)
		return err == nil && is
	})
	s.mustExecute(by, start+1)
	sn.stop()

	s.sender([]secret.String{key})
	s.mustExecute(by, start+2)
}
