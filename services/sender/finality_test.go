package sender

import (
	"context"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// Finality stands still for 300 blocks. What is mined takes no place while it waits to be final: everything is sent and
// mined, never more at a time than may be pending. Nothing ends before it is final, a process that comes in the middle
// of it finds everything, and afterwards every job ends, once.
func TestFinalityStalls(t *testing.T) {
	t.Parallel()
	const limit, jobs, blocks = 4, 10, 300
	s := newSite(t)
	s.cfg.Sender.MaxInFlight, s.cfg.Sender.Reserved = limit, 0
	by, key := s.keeper(0)
	before := s.nonce(by)
	var said []job.Job
	for range jobs {
		said = append(said, s.orderJob(s.marketOrder(100), by))
	}
	s.Node().StallFinality()
	defer s.Resume()
	first := s.sender([]secret.String{key})
	s.say(said...)
	mined := func() {
		t.Helper()
		s.eventually("all are mined and none is final", func(ctx context.Context) bool {
			pending, err := txstore.NewIntents(s.db).Pending(ctx, by)
			if err != nil || pending > limit {
				t.Errorf("%d pending, %v", pending, err)
			}
			return s.minedInFlight(ctx, by) == jobs && pending == 0
		})
	}
	mined()
	head := s.Node().Head().Number.Uint64()
	grow := func(to uint64) {
		t.Helper()
		for s.Node().Head().Number.Uint64() < head+to {
			if err := s.Node().Mine(10); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(blocks / 2)
	first.stop()
	second := s.sender([]secret.String{key})
	grow(blocks)
	s.eventually("the sender has seen it all", func(context.Context) bool {
		at, _ := second.headTracker.Newest()
		return at.Number >= head+blocks
	})
	mined()
	for _, j := range said {
		if early := s.results(j.ID); len(early) > 0 {
			t.Errorf("published before it was final: %+v", early)
		}
	}
	if got := s.nonce(by); got != before+jobs {
		t.Errorf("%d transactions for %d jobs", got-before, jobs)
	}
	s.Resume()
	s.mustAllEndOnce(said, by, before)
}

// minedInFlight counts a signer's transactions that are mined and not final.
func (s *site) minedInFlight(ctx context.Context, by chain.Address) (n int) {
	inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
	if err != nil {
		return 0
	}
	for _, f := range inFlight {
		if f.Intent.State == txm.Mined {
			n++
		}
	}
	return n
}
