package sender

import (
	"context"
	"testing"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/secret"
)

// Finality stands still for 300 blocks. Nothing ends before it is final, a process that comes in the middle of it finds
// everything, what is in flight does not grow beyond its limit, and afterwards every job ends, once.
func TestFinalityStalls(t *testing.T) {
	const limit, jobs, blocks = 4, 10, 300
	s := newSite(t)
	s.cfg.Sender.MaxInFlight = limit
	by, key := s.keeper(0)
	before := s.nonce(by)
	var said []job.Job
	for range jobs {
		said = append(said, s.orderJob(s.marketOrder(100), by))
	}
	s.devnet.Node().StallFinality()
	defer s.devnet.Resume()
	first := s.sender([]secret.String{key})
	s.say(said...)
	full := func(sn *running) {
		t.Helper()
		s.eventually("as much is in blocks as may be in flight", func(ctx context.Context) bool {
			flights, err := sn.intents.InFlight(ctx, by)
			if err != nil || len(flights) != limit {
				return false
			}
			for _, f := range flights {
				if f.Mined == nil {
					return false
				}
			}
			return sn.notices.has("as many transactions are in flight as may be")
		})
	}
	full(first)
	head := s.devnet.Node().Head().Number.Uint64()
	grow := func(to uint64) {
		t.Helper()
		for s.devnet.Node().Head().Number.Uint64() < head+to {
			if err := s.devnet.Node().Mine(10); err != nil {
				t.Fatal(err)
			}
			flights, err := s.db.Intents().InFlight(t.Context(), by)
			if err != nil || len(flights) != limit {
				t.Fatalf("%d in flight, %v", len(flights), err)
			}
		}
	}
	grow(blocks / 2)
	first.stop()
	second := s.sender([]secret.String{key})
	full(second)
	grow(blocks)
	s.eventually("the sender has seen it all", func(context.Context) bool {
		at, _ := second.horizon.Newest()
		return at.Number >= head+blocks
	})
	full(second)
	for _, j := range said {
		if early := s.results(j.ID); len(early) > 0 {
			t.Errorf("published before it was final: %+v", early)
		}
	}
	if got := s.nonce(by); got != before+limit {
		t.Errorf("%d transactions while %d may be in flight", got-before, limit)
	}
	s.devnet.Resume()
	s.mustAllEndOnce(said, by, before)
}
