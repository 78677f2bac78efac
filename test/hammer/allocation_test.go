package hammer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// NON-1, NON-2, NON-13, NON-14: three processes fight for one signer with nothing but the lease, the claim and what
// follows a transaction to its end, so that numbers are reached which whole senders would need hours for.
func TestAllocations(t *testing.T) {
	jobs, calm := 2000, 8*time.Second
	if os.Getenv("KEEPER_LONG") != "" {
		jobs, calm = size(t, 20_000), 20*time.Second
	}
	g := newRig(t, func(chain.BlockRef) {})
	if err := txstore.NewLeases(g.db).Register(t.Context(), g.signer, chainID); err != nil {
		t.Fatal(err)
	}
	processes := g.allocators()
	q := &queue{rig: g, jobs: jobs}
	began := time.Now()
	g.disturbUntil(processes, calm, "the jobs", q.fill)
	took := time.Since(began)
	g.await("the ends", g.settled(false))
	for _, p := range processes {
		p.Stop()
	}
	g.report(processes, fmt.Sprintf("%d allocations in %s (%.0f/s)", q.jobs, took.Round(time.Second),
		float64(q.jobs)/took.Seconds()), g.audit(q.jobs))
}

// allocators starts this binary again, as something else.
func (g *rig) allocators() (processes []*process) {
	g.t.Helper()
	text, err := json.Marshal(orders{Database: g.throughDatabase, Node: g.throughRPC, Key: g.key})
	if err != nil {
		g.t.Fatal(err)
	}
	for i := range senders {
		processes = append(processes, startProcess(g.t, fmt.Sprintf("allocator-%d", i+1), os.Args[0],
			[]string{allocatorVariable + "=" + string(text)}))
	}
	return processes
}

// queue keeps intents queued. The first is said as any job is; the others are copies of its row.
type queue struct {
	*rig
	jobs   int
	queued int
}

// portion is how many rows are copied at a time.
const portion = 10_000

// fill queues intents while there are few, and returns what is missing, for await.
func (q *queue) fill(ctx context.Context) (missing string) {
	done := q.node.count()
	if q.late() && q.queued < q.jobs {
		q.t.Errorf("the time is up: %d of %d jobs were queued", q.queued, q.jobs)
		q.jobs = q.queued
	}
	if done >= q.jobs {
		return ""
	}
	if q.queued == 0 {
		if a, err := txstore.NewIntents(q.db).
			Enqueue(ctx, jobOfMarket(0, q.signer, job.Evidence{Block: q.node.now()})); err != nil ||
			a != txm.NewAttempt {
			q.t.Fatal(a, err)
		}
		q.queued = 1
	}
	if more := min(portion, q.allowed(q.jobs)-q.queued); more > 0 && q.queued-done < portion {
		q.copy(q.queued, q.queued+more-1)
		q.queued += more
	}
	return fmt.Sprintf("%d of %d executed", done, q.jobs)
}

// copy queues the jobs of some numbers. Their keys are those of marketOf.
func (q *queue) copy(from, to int) {
	q.t.Helper()
	q.connected(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx,
			`INSERT INTO keeper.tx_intent (job_id, attempt, tries, kind, key, account, class, ratio, due_since_ms, job,
				signer, state, said_ms)
			SELECT 'adlState:0x' || market || ':true:0', 1, 0, i.kind, decode(repeat('00', 12) || market, 'hex'),
				i.account, i.class, i.ratio, i.due_since_ms + n,
				i.job || jsonb_build_object('id', 'adlState:0x' || market || ':true:0', 'market', '0x' || market,
					'key', '0x' || repeat('00', 12) || market),
				i.signer, 'QUEUED', i.said_ms
			FROM generate_series($1::bigint, $2::bigint) n, lateral (SELECT 'a1' || repeat('00', 11) ||
				lpad(to_hex(n), 16, '0')) AS m (market), keeper.tx_intent i
			WHERE i.key = $3`, from, to, hashOfMarket(0))
		return err
	})
}
