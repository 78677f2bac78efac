package sender

import (
	"context"
	"errors"
	"strings"
	"testing"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/nonce"
)

// The whole database is put back to where it was before some transactions, under a sender that goes on. It has the same
// identity, so that only the chain tells; nothing is signed until a resync, whose token is above all that the lost time
// gave out, and then everything goes on.
func TestDatabaseRestored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	sn := s.sender([]secret.String{key})
	start := s.nonce(by)
	s.mustExecute(by, start)

	restore := pgtest.Snapshot(t, s.cfg.Postgres.URL.Reveal())
	for n := range uint64(3) { // under tokens that the restored database does not know
		s.mustExecute(by, start+1+n)
	}
	before, token := s.nonce(by), s.token(by.Hex())
	restore()

	last := s.orderJob(s.marketOrder(100), by)
	s.say(last)
	s.eventually("the signer is paused, and people are told why", func(ctx context.Context) bool {
		depth, err := sn.intents.Depth(ctx, by)
		reason, err2 := sn.intents.Paused(ctx, by)
		return errors.Join(err, err2) == nil && depth > 0 && strings.Contains(reason, "gone back in time") &&
			sn.notices.has("gone back in time")
	})
	if got := s.nonce(by); got != before {
		t.Errorf("%d transactions before the resync", got-before)
	}
	s.eventually("it is resynced", func(ctx context.Context) bool {
		final, err := sn.node.NonceAt(ctx, by, evm.Finalized)
		_, refused := txstore.NewLeases(s.db).
			Resync(ctx, by, nonce.ChainNonces{Finalized: final, Latest: s.nonce(by), Pending: s.nonce(by)})
		return errors.Join(err, refused) == nil
	})
	s.mustEndOnce(last, by, before)
	if now := s.token(by.Hex()); now <= token {
		t.Errorf("the token is %d, the lost time had %d", now, token)
	}
}

// token is a signer's fencing token as the database has it.
func (s *site) token(signer string) (token int64) {
	s.t.Helper()
	s.eventually("the signers are listed", func(ctx context.Context) bool {
		all, err := txstore.NewSigners(s.db).List(ctx)
		for _, one := range all {
			if one.Signer.Hex() == signer {
				token = one.Token
			}
		}
		return err == nil
	})
	return token
}
