package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/test/rig"
)

// BenchmarkNonces gives out nonces, a round of them to each signer, by the claim, which stores the signed transaction
// in the same statement. Nothing is signed and nothing is broadcast: it is the database's part. What a round has left
// in flight is ended before the next one.
//
// It finds tables as after some weeks of work: with rows of the past, and cleaned up and counted now and then. (Of
// empty tables the server makes plans that read all of them.)
//
// The server is one that waits for its disk at each commit, unlike that of other tests: what is not on disk when it is
// broadcast is given out again.
func BenchmarkNonces(b *testing.B) {
	for _, signers := range []int{1, 8} {
		for _, batch := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("signers=%d/batch=%d", signers, batch), func(b *testing.B) { nonces(b, signers, batch) })
		}
	}
}

const (
	// round is how many nonces a signer is given between two pauses. As many are in flight then.
	round = 256
	// past is how many nonces all signers together were given before.
	past = 80_000
	// upkeep is after how many rounds the tables are cleaned up and counted.
	upkeep = 8
)

func nonces(b *testing.B, signers, batch int) {
	address := durable(b)
	ours := newClaimants(b, address, signers, batch)
	ours.remember()
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		ours.queue()
		b.StartTimer()
		took += ours.race()
		b.StopTimer()
		ours.end()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*signers*round)/took.Seconds(), "nonces/s")
	b.ReportMetric(0, "ns/op")
}

// durable is the address of a migrated database on a server of its own, with the settings of the demo's.
func durable(b *testing.B) (address string) {
	b.Helper()
	server, err := postgres.Start(postgres.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	})
	if err := openAt(b, server.URL(""), 1).Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	return server.URL("")
}

// claimants are the owners of signers, who claim in batches.
type claimants struct {
	b      *testing.B
	conn   *pgx.Conn // of the benchmark's own
	db     *pg.DB
	batch  int
	fences []lease.Fence
	next   []uint64
	ids    [][]int64 // queued intents of each signer
	rounds int
}

func newClaimants(b *testing.B, address string, signers, batch int) *claimants {
	b.Helper()
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	db := openAt(b, address, signers)
	c := &claimants{b: b, conn: conn, db: db, batch: batch, next: make([]uint64, signers),
		ids: make([][]int64, signers)}
	for n := range signers {
		signer := chain.Address{0x51, byte(n)}
		if err := txstore.NewLeases(db).Register(b.Context(), signer, chainID); err != nil {
			b.Fatal(err)
		}
		fence, err := txstore.NewLeases(db).Acquire(b.Context(), signer, lease.NewOwner("bench"), time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		c.fences = append(c.fences, fence)
	}
	return c
}

func (c *claimants) exec(sql string, args ...any) {
	c.b.Helper()
	if _, err := c.conn.Exec(context.Background(), sql, args...); err != nil {
		c.b.Fatalf("%s: %v", sql, err)
	}
}

// remember gives each signer its part of the past.
func (c *claimants) remember() {
	each := past / len(c.fences)
	for n, f := range c.fences {
		c.exec(`WITH done AS (
				INSERT INTO keeper.tx_intent
					(job_id, attempt, kind, key, account, class, ratio, due_since_ms, job, signer, state, nonce, token,
						outcome, ended_at, retry_after_ms, reported_at)
				SELECT 'order:' || encode($1, 'hex') || ':' || n, 1, $2, decode(lpad(to_hex(n), 64, encode($1,
					'hex')), 'hex'), $1, 3, 0, n, '{}', $1,
					'FINAL_OK', n, 1, 'done', clock_timestamp(), 0, clock_timestamp()
				FROM generate_series(0, $3::bigint - 1) n RETURNING id, nonce
			), consumed AS (
				INSERT INTO keeper.signer_nonce_allocation (signer, nonce, state, intent, token)
					SELECT $1, nonce, 'CONSUMED', id, 1 FROM done
			)
			INSERT INTO keeper.signed_tx (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
			SELECT sha256(id::text::bytea), id, $1, nonce, 1, 'EXEC', decode(repeat('00', $4), 'hex'), 1, 1, 6000000,
				1 FROM done`,
			f.Signer[:], string(job.Order), each, rawBytes)
		c.exec(`UPDATE keeper.signer_lease SET next_nonce = $2 WHERE signer = $1`, f.Signer[:], each)
		c.next[n] = uint64(each)
	}
	c.exec(`VACUUM ANALYZE`)
}

// queue stores a round of intents for each signer.
func (c *claimants) queue() {
	for n, f := range c.fences {
		rows, err := c.conn.Query(context.Background(), `INSERT INTO keeper.tx_intent
				(job_id, attempt, tries, kind, key, account, class, ratio, due_since_ms, job, signer, state, said_ms)
			SELECT 'order:' || encode($1, 'hex') || ':' || n, 1, 0, $2, decode(lpad(to_hex(n), 64, encode($1, 'hex')),
				'hex'), $1, 3, 0, n, '{}', $1, 'QUEUED', 1
			FROM generate_series($3::bigint, $4::bigint) n RETURNING
				id`, f.Signer[:], string(job.Order), int64(c.next[n]), int64(c.next[n])+round-1)
		if err == nil {
			c.ids[n], err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		if err != nil {
			c.b.Fatal(err)
		}
	}
}

// race claims all that is queued, a signer beside the other, and returns how long that took.
func (c *claimants) race() time.Duration {
	c.b.Helper()
	began := time.Now()
	var group errgroup.Group
	for n := range c.fences {
		group.Go(func() error { return c.claim(n) })
	}
	if err := group.Wait(); err != nil {
		c.b.Fatal(err)
	}
	return time.Since(began)
}

// claim claims what is queued of one signer.
func (c *claimants) claim(n int) error {
	for ids := c.ids[n]; len(ids) > 0; ids = ids[c.batch:] {
		claim := txm.Batch{Cursor: c.next[n], Limits: txm.Limits{Signer: round, Liquidations: 1}}
		for _, id := range ids[:c.batch] {
			claim.Claims = append(claim.Claims, txm.Claim{Intent: id, Kind: job.Order, Tx: bytesLike(id, c.next[n])})
			c.next[n]++
		}
		if err := txstore.NewIntents(c.db).Claim(context.Background(), c.fences[n], claim); err != nil {
			return err
		}
	}
	return nil
}

// rawBytes is how long a transaction is that executes an order with two small reports.
const rawBytes = 600

func bytesLike(id int64, n uint64) txm.SignedTx {
	raw := make([]byte, rawBytes)
	binary.BigEndian.PutUint64(raw, uint64(id))
	return txm.SignedTx{Nonce: n, Gas: 6_000_000, Tip: 1, Cap: 1, Hash: sha256.Sum256(raw), Raw: raw}
}

// end ends what was claimed, as heads and receipts would, and now and then cleans up and counts as the server does in
// time.
func (c *claimants) end() {
	c.exec(
		`UPDATE keeper.tx_intent SET state = 'FINAL_OK', outcome = 'done', ended_at = clock_timestamp(), reported_at =
			clock_timestamp(), retry_after_ms = 0
		WHERE state = 'SIGNED'`)
	c.exec(`UPDATE keeper.signer_nonce_allocation SET state = 'CONSUMED' WHERE state = 'SIGNED'`)
	c.exec(`UPDATE keeper.signer_lease SET mined_nonce = next_nonce`)
	if c.rounds++; c.rounds%upkeep != 0 {
		return
	}
	for _, table := range []string{"tx_intent", "signer_nonce_allocation", "signer_lease"} {
		c.exec(`VACUUM ANALYZE keeper.` + table)
	}
}

func openAt(b *testing.B, address string, signers int) *pg.DB {
	b.Helper()
	cfg := pg.DefaultConfig()
	cfg.PlanOnce = true // as the sender has it
	cfg.URL, cfg.MaxConns = secret.MustURL(address), signers+2
	return rig.PostgresOf(b, cfg)
}
