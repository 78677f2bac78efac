package sender

import (
	"bytes"
	"context"
	"os"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
)

// NON-13, NON-14: a sender that is killed at any moment leaves a job that its successor brings to the same end: one
// transaction, the same bytes if any were stored, one nonce, and a result.
//
// The victim shares this process and nothing else with its heir: from its moment on every way out of it, to the signer,
// the store, the leases and the nodes, is shut, and nothing is given back. KEEPER_LONG=1 tries more moments. What this
// cannot show is that memory and connections end as well: TestSuccession and test/hammer kill processes.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	moments := []string{"before sign", "after sign", "before claim", "after claim", "before send", "after send",
		"seeing the receipt", "after record", "after finish"}
	if os.Getenv("KEEPER_LONG") != "" {
		moments = append(moments, "before enqueue", "after enqueue", "before acquire", "after acquire",
			"before take over", "after take over", "before note", "after note",
			"before record", "before finish", "before report", "after report")
	}
	for _, moment := range moments {
		t.Run(moment, func(t *testing.T) {
			s := s.in(t)
			before := s.nonce(by)
			j := s.orderJob(s.marketOrder(100), by)
			s.say(j)
			m := newMortal(moment)
			victim := s.sender([]secret.String{key}, m.inhabit)
			m.await(t)
			victim.stop()

			heir := newMortal("never")
			s.sender([]secret.String{key}, heir.inhabit)
			s.mustEndOnce(j, by, before)
			s.mustBeStored(j, append(m.sent, heir.sent...))
		})
	}
}

// mustExecute has one more job executed, at a nonce.
func (s *site) mustExecute(by chain.Address, nonce uint64) {
	s.t.Helper()
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.mustEndOnce(j, by, nonce)
}

// mustEndOnce waits for the job's end and demands that it took one transaction.
func (s *site) mustEndOnce(j job.Job, by chain.Address, before uint64) {
	s.t.Helper()
	r := s.result(j.ID, 1)
	if r.Outcome != job.Done || r.Nonce != before {
		s.t.Errorf("result %+v, want it executed at nonce %d", r, before)
	}
	for _, again := range s.results(j.ID) {
		again.AtMs = r.AtMs
		if again != r {
			s.t.Errorf("published as %+v and as %+v", r, again)
		}
	}
	if got := s.nonce(by); got != before+1 {
		s.t.Errorf("%d transactions for one job", got-before)
	}
	s.eventually("nothing is left in flight", func(ctx context.Context) bool {
		inFlight, err := txstore.NewIntents(s.db).InFlight(ctx, by)
		return err == nil && len(inFlight) == 0
	})
}

// mustBeStored demands that all that was ever broadcast for a job is one transaction, and that it is the stored one.
func (s *site) mustBeStored(j job.Job, broadcast [][]byte) {
	s.t.Helper()
	if len(broadcast) == 0 {
		s.t.Error("nothing was broadcast")
	}
	stored := s.result(j.ID, 1).TxHash
	for _, raw := range broadcast {
		if chain.Keccak256(raw) != stored {
			s.t.Errorf("broadcast %s, stored %s", chain.Keccak256(raw), stored)
		}
		if !bytes.Equal(raw, broadcast[0]) {
			s.t.Error("different bytes were broadcast")
		}
	}
}

// in is the site of a subtest.
func (s *site) in(t *testing.T) *site {
	inner := *s
	inner.t = t
	return &inner
}
