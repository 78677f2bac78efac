package sender

import (
	"context"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
)

// An operator gives a number back whose job is still due: the sender spends it on a payment to oneself, the job is not
// done by it, and the numbers above go on.
func calledOff(t *testing.T, s *site, by chain.Address, key secret.String) {
	before, w := s.nonce(by), &witness{}
	s.cfg.Sender.Cooldown = hangGuard // a second attempt is no part of this
	w.mute.Store(true)
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("it is in flight", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	if err := txstore.NewSigners(s.db).CallOff(t.Context(), by, before, "alice", "it makes nodes stumble"); err != nil {
		t.Fatal(err)
	}
	s.eventually("its nonce is freed", func(ctx context.Context) bool {
		inFlight, err := sn.intents.InFlight(ctx, by)
		return err == nil && len(inFlight) == 1 && inFlight[0].Leaving()
	})
	w.mute.Store(false)
	r := s.result(j.ID, 1)
	if r.Outcome != job.Withdrawn || r.Nonce != before || r.GasUsed != 21_000 ||
		r.Reason != "called off by alice: it makes nodes stumble" {
		t.Errorf("result %+v", r)
	}
	if found, err := s.db.Order(t.Context(), j.Key); err != nil || !found.Row.Status.Pending() {
		t.Errorf("the order is %+v, %v", found, err)
	}
	next := s.orderJob(s.marketOrder(110), by)
	s.say(next)
	s.mustEndOnce(next, by, before+1)
}
