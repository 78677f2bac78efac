package sender

import (
	"context"
	"math/big"
	"testing"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/setting/secret"
)

// What expired is cancelled once, by the contracts' own call, and not before the venue lets a keeper: a job that comes
// too early waits, is no failure, and tells what it waits for.
func TestCancelsWhatExpired(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	deployer, err := devnet.Accounts(devnet.DeployerIndex, 1)
	if err != nil {
		t.Fatal(err)
	}
	by, key := s.keeper(0)
	before := s.nonce(by)
	order := s.marketOrder(100)
	cancel := s.orderJob(order, by)
	cancel.ID, cancel.Kind, cancel.Class = job.CancelID(cancel), "cancelOrder", job.ClassCleanup
	cancel.DueSinceMs, cancel.ExpiresMs, cancel.Tokens = cancel.ExpiresMs, 0, nil
	sn := s.sender([]secret.String{key})
	s.say(cancel)
	s.eventually("it is too early", func(context.Context) bool { return sn.notices.has("RequestNotYetCancellable") })
	s.mined(s.Venue.SetUint(t.Context(), deployer[0].Key, "REQUEST_EXPIRATION_TIME", big.NewInt(2))) // seconds
	s.mustEndOnce(cancel, by, before)
	s.eventually("the order is cancelled", func(ctx context.Context) bool {
		found, err := s.db.Order(ctx, order)
		return err == nil && found.Row.Status == perp.Cancelled
	})
}
