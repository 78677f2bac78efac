//go:build browser

package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/console/web"
)

// seed gives a site a keeper's day: jobs that ended in several ways, some in flight and some waiting, a paused signer,
// dead letters and delayed jobs.
func (s *site) seed() {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(outbox.NewLeases(s.db).Register(ctx, signer, 56))
	s.must(outbox.NewLeases(s.db).Register(ctx, chain.Address{0xb2, 7: 0x31, 19: 9}, 56))
	fence, err := outbox.NewLeases(s.db).Acquire(ctx, signer, lease.NewOwner("sender-a"), time.Hour)
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
	_, err = outbox.NewSigners(s.db).
		Pause(ctx, chain.Address{0xb2, 7: 0x31, 19: 9}, "the key is being moved to another machine")
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
	block := seededBlock()
	s.expose(part, 1, block, 0, 40)
	s.sell(part, 2, block)
	s.quote()
}

// seededBlock is of the test's beginning, whenever it is asked for.
var seededBlock = sync.OnceValue(func() chain.BlockRef {
	return chain.BlockRef{Number: 48_211_907, Hash: chain.Hash{7}, Parent: chain.Hash{6},
		TimeMs: uint64(time.Now().UnixMilli())}
})

// sell gives the state the transactions of the seeded jobs in flight and of one more, in a final block.
func (s *site) sell(part *pg.Partition, next int64, parent chain.BlockRef) {
	s.t.Helper()
	const gwei = 1_000_000_000
	block := chain.BlockRef{Number: parent.Number + 1, Hash: chain.Hash{8}, Parent: parent.Hash,
		TimeMs: parent.TimeMs + 450}
	s.earn(part, next, block,
		sentTx{chain.Hash{0xf0, 0}, true, 2_412_730, gwei, 4_120_000 * gwei},
		sentTx{chain.Hash{0xf0, 1}, true, 1_904_112, gwei, 3_655_000 * gwei},
		sentTx{chain.Hash{0xf0, 2}, false, 611_902, gwei, 0},
		sentTx{chain.Hash{0xee}, true, 2_050_118, 3 * gwei, 5_020_000 * gwei})
}

// quote has two sources serve prices in turn: of one token they have moved.
func (s *site) quote() {
	s.t.Helper()
	usd := func(hundredths uint64) perp.Uint { return perp.U64(hundredths).Mul(perp.Pow10(28)) }
	now := uint64(time.Now().UnixMilli())
	for _, q := range []struct {
		token    chain.Address
		source   string
		min, max uint64 // hundredths of USD
		ageMs    uint64
	}{
		{someMarket.IndexToken, "stream-1", 98_410, 98_460, 40_000}, {someMarket.IndexToken, "stream-2", 100_000,
			100_010, 2_100},
		{chain.Address{0x71, 2: 9, 19: 4}, "stream-1", 6_412_050, 6_413_200, 900},
		{chain.Address{0x82, 2: 7, 19: 6}, "stream-1", 61_238, 61_241, 1_400},
		{chain.Address{0x82, 2: 7, 19: 6}, "stream-1", 57_900, 57_950, 30_000},
		{chain.Address{0x93, 2: 5, 19: 8}, "stream-2", 17, 18, 44_000},
	} {
		report := wire.Price{Token: q.token, Min: usd(q.min), Max: usd(q.max), TimeMs: now - q.ageMs,
			ReceivedMs: now - q.ageMs + 85, Source: q.source}
		r, err := wire.Encode(q.token[:], report, 0, 0)
		s.must(err)
		_, err = s.client.Producer(wire.PriceTopic(s.deps.Keeper.ChainID)).Produce(s.t.Context(), 0, []bus.Record{r})
		s.must(err)
	}
}

// seenNode is a chain that is well, whose tokens have no decimals.
type seenNode struct{}

func (seenNode) Head(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: 48_211_910, Hash: chain.Hash{9}, TimeMs: uint64(time.Now().UnixMilli()) - 400}, nil
}

func (n seenNode) Finalized(ctx context.Context) (chain.BlockRef, error) {
	b, err := n.Head(ctx)
	b.Number, b.TimeMs = b.Number-2, b.TimeMs-1500
	return b, err
}

func (seenNode) NonceAt(context.Context, chain.Address, evm.Tag) (uint64, error) { return 3, nil }

func (seenNode) Balance(context.Context, chain.Address) (perp.Uint, error) {
	return perp.U64(1_374_205_118_000_000_000), nil
}

func (seenNode) Call(context.Context, chain.Address, []byte, chain.Hash) ([]byte, error) {
	return make([]byte, 32), nil
}

// processes play the scanner and the planner: what their metrics say of prices.
func processes(t testing.TB) (all []web.Process) {
	t.Helper()
	const metrics = `# TYPE price_source_up gauge
price_source_up{source="stream-1"} 1
price_source_up{source="stream-2"} 0
# TYPE price_source_active gauge
price_source_active{source="stream-1"} 3
price_source_active{source="stream-2"} 2
# TYPE price_source_reports_total counter
price_source_reports_total{source="stream-1"} 48211
price_source_reports_total{source="stream-2"} 47702
# TYPE price_gate_rejections_total counter
price_gate_rejections_total{source="stream-1",reason="spread"} 3
price_gate_rejections_total{source="stream-2",reason="stale"} 19
# TYPE price_source_failures_total counter
price_source_failures_total{source="stream-2"} 2
`
	const planner = "# TYPE planner_mode gauge\nplanner_mode 1\n# TYPE planner_jobs_live gauge\nplanner_jobs_live 7\n"
	for name, says := range map[string]string{"scanner": metrics, "planner": planner} {
		serves := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				_, _ = io.WriteString(w, says)
			}
		}))
		t.Cleanup(serves.Close)
		all = append(all, web.Process{Name: name, Address: serves.URL})
	}
	slices.SortFunc(all, func(a, b web.Process) int { return strings.Compare(b.Name, a.Name) }) // as the work flows
	return all
}

// end has the job at the head of the queue end without a transaction.
func (s *site) end(fence lease.Fence, outcome job.Outcome) {
	s.t.Helper()
	heads, err := outbox.NewIntents(s.db).Heads(s.t.Context(), signer, txm.Pick{Limit: 1})
	s.must(err)
	s.must(outbox.NewIntents(s.db).Skip(s.t.Context(), fence, heads[0].ID, txm.Ending{
		Verdict: txm.Verdict{Outcome: outcome, Reason: "the venue says OrderNotFulfillableAtAcceptablePrice"},
		Rest:    txm.Rest{RearmMs: 1}}))
}

// claim gives the job at the head of the queue a number.
func (s *site) claim(fence lease.Fence, n uint64) {
	s.t.Helper()
	heads, err := outbox.NewIntents(s.db).Heads(s.t.Context(), signer, txm.Pick{Limit: 1})
	s.must(err)
	s.must(outbox.NewIntents(s.db).Claim(s.t.Context(), fence, txm.Batch{Cursor: n,
		Limits: txm.Limits{Signer: 16, Liquidations: 1}, Claims: []txm.Claim{{Intent: heads[0].ID,
			Kind: heads[0].Job.Kind, Tx: txm.SignedTx{Nonce: n, Hash: chain.Hash{0xf0, byte(n)}, Raw: []byte{1},
				Gas: 2_100_000, Tip: 50_000_000, Cap: 3_000_000_000}}}}))
}
