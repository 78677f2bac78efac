//go:build browser

package web_test

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

// seed gives a site a keeper's day: jobs that ended in several ways, some in flight and some waiting, a paused signer,
// dead letters and delayed jobs.
func (s *site) seed() {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.db.Leases().Register(ctx, signer, 56))
	s.must(s.db.Leases().Register(ctx, chain.Address{0xb2, 7: 0x31, 19: 9}, 56))
	fence, err := s.db.Leases().Acquire(ctx, signer, lease.NewOwner("sender-a"), time.Hour)
	s.must(err)
	outcomes := []job.Outcome{job.LostRace, job.Refused, job.DroppedRecovered, job.Expired}
	for n := range byte(12) {
		s.enqueue(n + 1)
		s.end(fence, outcomes[int(n)%len(outcomes)])
	}
	for n := range byte(3) {
		s.enqueue(0x40 + n)
		s.claim(fence, uint64(n))
	}
	for n := range byte(4) {
		s.enqueue(0x60 + n)
	}
	_, err = s.db.Signers().Pause(ctx, chain.Address{0xb2, 7: 0x31, 19: 9}, "the key is being moved to another machine")
	s.must(err)
	for n := range byte(3) {
		s.letter(0x80 + n)
	}
	_, err = s.db.Delayed().Add(ctx,
		delayed.Appointment{Kind: delayed.DailyReport, Key: someJob(5).ID + "#1", Payload: map[string]string{},
			DueAt: time.Now().Add(-time.Minute)},
		delayed.Appointment{Kind: delayed.DailyReport, Key: "2026-11-22", Payload: map[string]string{},
			DueAt: time.Now().Add(time.Hour)})
	s.must(err)
	part, err := s.db.Claim(ctx, pg.ClaimRequest{Generation: 1, Partitions: 1})
	s.must(err)
	block := chain.BlockRef{Number: 48_211_907, Hash: chain.Hash{7}, Parent: chain.Hash{6},
		TimeMs: uint64(time.Now().UnixMilli())}
	s.expose(part, 1, block, 0, 40)
}

// end has the job at the head of the queue end without a transaction.
func (s *site) end(fence lease.Fence, outcome job.Outcome) {
	s.t.Helper()
	heads, err := s.db.Intents().Heads(s.t.Context(), signer, txm.Pick{Limit: 1})
	s.must(err)
	s.must(s.db.Intents().Skip(s.t.Context(), fence, heads[0].ID, txm.Ending{
		Verdict: txm.Verdict{Outcome: outcome, Reason: "the venue says OrderNotFulfillableAtAcceptablePrice"},
		Rest:    txm.Rest{RearmMs: 1}}))
}

// claim gives the job at the head of the queue a number.
func (s *site) claim(fence lease.Fence, n uint64) {
	s.t.Helper()
	heads, err := s.db.Intents().Heads(s.t.Context(), signer, txm.Pick{Limit: 1})
	s.must(err)
	s.must(s.db.Intents().Claim(s.t.Context(), fence, txm.Batch{Cursor: n,
		Limits: txm.Limits{Signer: 16, Liquidations: 1}, Claims: []txm.Claim{{Intent: heads[0].ID,
			Kind: heads[0].Job.Kind, Tx: txm.SignedTx{Nonce: n, Hash: chain.Hash{0xf0, byte(n)}, Raw: []byte{1},
				Gas: 2_100_000, Tip: 50_000_000, Cap: 3_000_000_000}}}}))
}
