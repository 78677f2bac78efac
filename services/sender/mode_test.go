package sender

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/setting/secret"
)

// NON-9, NON-10, NON-14: the same jobs, done once each, in both modes and on the way from one to the other. What the
// mode changes is how often a lease is asked for in vain.
func TestModes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	for _, c := range []struct{ first, second string }{{workerQueue, workerQueue}, {basic, workerQueue}} {
		t.Run(c.first+" to "+c.second, func(t *testing.T) {
			s := s.in(t)
			before := s.nonce(by)
			start := func(mode string) *running {
				s.cfg.Sender.Mode = mode
				return s.sender([]secret.String{key})
			}
			jobs := func(n int) (said []job.Job) {
				for range n {
					said = append(said, s.orderJob(s.marketOrder(100), by))
				}
				s.say(said...)
				return said
			}
			first, second := start(c.first), start(c.second)
			said := jobs(3)
			s.result(said[0].ID, 1)
			first.stop() // in the middle of its work
			said = append(said, jobs(3)...)
			third := start(c.second)
			said = append(said, jobs(2)...)
			s.mustAllEndOnce(said, by, before)
			vain := 0.0
			for _, r := range []*running{first, second, third} {
				vain += r.sample("lease_acquire_total", "held")
			}
			t.Logf("%d jobs, %.0f leases asked for in vain", len(said), vain)
			if c.first == workerQueue && c.second == workerQueue && vain > 3 {
				t.Errorf("%.0f leases were asked for in vain, though each signer has one place", vain)
			}
			second.stop()
			third.stop()
		})
	}
}

// NON-9: who gets a signer's partition may lack its key, as where each machine has its own. The signer is worked
// by who has it.
func TestSendersWithKeysOfTheirOwn(t *testing.T) {
	s := newSite(t)
	s.cfg.Sender.Mode = workerQueue
	var by [2]chain.Address
	var keys [2]secret.String
	first := map[int]int{} // signer by partition
	for n := 0; by[1].IsZero(); n++ {
		address, _ := s.keeper(n)
		p := wire.SignerPartition(address, s.cfg.Keeper.JobPartitions)
		if before, is := first[p]; is {
			by[0], keys[0] = s.keeper(before)
			by[1], keys[1] = s.keeper(n)
		}
		first[p] = n
	}
	for _, key := range keys {
		s.sender([]secret.String{key})
	}
	for range 2 { // the second ones find both worked
		before := [2]uint64{s.nonce(by[0]), s.nonce(by[1])}
		jobs := [2]job.Job{s.orderJob(s.marketOrder(100), by[0]), s.orderJob(s.marketOrder(100), by[1])}
		s.say(jobs[:]...)
		for i, j := range jobs {
			s.mustEndOnce(j, by[i], before[i])
		}
	}
}

// A sender that cannot reach the chain says so and takes no partition and no lease from one that can.
func TestBlindSenderStandsAside(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(0)
	before := s.nonce(by)
	s.sender([]secret.String{key})
	first := s.orderJob(s.marketOrder(100), by)
	s.say(first)
	s.result(first.ID, 1)
	nowhere := httptest.NewServer(http.NotFoundHandler())
	nowhere.Close()
	s.cfg.Chain.URLs = []secret.URL{secret.MustURL(nowhere.URL)}
	blind := s.sender([]secret.String{key})
	s.eventually("it waits for the chain", func(ctx context.Context) bool {
		err := blind.notices.healthy(ctx)
		return err != nil && strings.Contains(err.Error(), "127.0.0.1")
	})
	second := s.orderJob(s.marketOrder(100), by)
	s.say(second)
	s.mustAllEndOnce([]job.Job{first, second}, by, before)
	if asked := blind.sample("lease_acquire_total"); asked != 0 {
		t.Errorf("it asked for %.0f leases", asked)
	}
}

// mustAllEndOnce waits for the ends of jobs and demands that they took one transaction each.
func (s *site) mustAllEndOnce(said []job.Job, by chain.Address, before uint64) {
	s.t.Helper()
	nonces := map[uint64]string{}
	for _, j := range said {
		r := s.result(j.ID, 1)
		if r.Outcome != job.Done {
			s.t.Errorf("result %+v", r)
		}
		if other, taken := nonces[r.Nonce]; taken {
			s.t.Errorf("%s and %s have nonce %d", other, j.ID, r.Nonce)
		}
		nonces[r.Nonce] = j.ID
	}
	if got := s.nonce(by); got != before+uint64(len(said)) {
		s.t.Errorf("%d transactions for %d jobs", got-before, len(said))
	}
}
