package txmanager

import (
	"context"
	"time"
)

// externalUsePause is how often it is looked whether somebody else uses a signer's key.
const externalUsePause = 5 * time.Second

// externalUse looks, also while nothing is sent, whether the chain has numbers of the signer that were never given out
// here: somebody else has sent with its key. The drain then reads the cursor anew (worker.cursorOf): the store
// compares its numbers with the chain's, and pauses the signer. It is used by one goroutine.
type externalUse struct {
	duty
	clock  func() time.Time
	cursor *cursor
	next   time.Time
}

// pass looks when it is time. Of one endpoint's word nothing is concluded where there are several.
func (s *externalUse) pass(ctx context.Context) error {
	given := s.cursor.given.Load()
	now := s.clock()
	if given == 0 || now.Before(s.next) {
		return nil
	}
	s.next = now.Add(externalUsePause)
	next, sure, err := reached(ctx, s.node, s.signer)
	if err == nil && sure && next > given {
		s.cursor.unverified.Store(true)
	}
	return err
}
