package sender

import (
	"context"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
)

// A standby is promoted behind the one address, and the old primary stays up and only reads. Where nothing was lost,
// statevm and sender go on at the new one within 15 seconds, and nobody is asked.
func TestPromotedStandby(t *testing.T) {
	pair := pgtest.NewPair(t)
	s := newSiteAt(t, pair.URL())
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	s.mustExecute(by, start)

	pair.Promote()
	begun := time.Now()
	s.mustExecute(by, start+1)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	if reason, err := sn.intents.Paused(t.Context(), by); err != nil || reason != "" {
		t.Errorf("paused: %q, %v", reason, err)
	}
}

// A sender that has lost nothing by a promotion, not even a connection, notices it all the same, and takes the database
// for its own by itself; its next start, at whatever time, is like any other.
func TestPromotionIsNoticedByWhoeverRuns(t *testing.T) {
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

// Where the standby lacked what was sent, the signer is paused for a person, as the chain is beyond it.
func TestPromotedStandbyThatLacksSomething(t *testing.T) {
	pair := pgtest.NewPair(t)
	s := newSiteAt(t, pair.URL())
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	s.mustExecute(by, start)

	pair.Lag()
	s.mustExecute(by, start+1)
	pair.Promote()
	s.say(s.orderJob(s.marketOrder(100), by))
	s.eventually("the signer is paused, and people are told why", func(ctx context.Context) bool {
		reason, err := sn.intents.Paused(ctx, by)
		return err == nil && strings.Contains(reason, "gone back in time") &&
			sn.notices.has("gone back in time")
	})
	if got := s.nonce(by); got != start+2 {
		t.Errorf("%d transactions after the promotion", got-start-2)
	}
}
