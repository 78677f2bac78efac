package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// BenchmarkNonces gives out nonces, a round of them to each signer: with the claim, which stores the signed transaction
// in the same statement, and then with the statements that the scheme with a lease and a row for each nonce needs for
// the same number (see rivals), on the same server: x-rival counts the two that come before the broadcast,
// x-rival-recorded also the third, which is the first that says by which transaction the nonce was used. After our
// claim that is stored as well, and the bytes. Nothing is signed and nothing is broadcast on either side: it is the
// database's part that differs. What a round has left in flight is ended before the next one.
//
// Both find tables as after some weeks of work: with rows of the past, and cleaned up and counted now and then. (Of
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
	ours, theirs := newClaimants(b, address, signers, batch), newRivals(b, address, signers)
	ours.remember()
	theirs.remember()
	var took, reserved, recorded time.Duration
	for b.Loop() {
		b.StopTimer()
		ours.queue()
		b.StartTimer()
		took += ours.race(b)
		b.StopTimer()
		ours.end()
		reserving, recording := theirs.race(b)
		reserved, recorded = reserved+reserving, recorded+reserving+recording
		theirs.end()
		b.StartTimer()
	}
	given := float64(b.N * signers * round)
	b.ReportMetric(given/took.Seconds(), "nonces/s")
	b.ReportMetric(given/reserved.Seconds(), "rival-nonces/s")
	b.ReportMetric(reserved.Seconds()/took.Seconds(), "x-rival")
	b.ReportMetric(recorded.Seconds()/took.Seconds(), "x-rival-recorded")
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

// together runs something for every signer at once, and returns how long it took.
func together(b *testing.B, signers int, do func(n int) error) time.Duration {
	b.Helper()
	began := time.Now()
	var group sync.WaitGroup
	for n := range signers {
		group.Go(func() {
			if err := do(n); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

// outlook is a connection of the benchmark's own.
type outlook struct {
	b    *testing.B
	conn *pgx.Conn
}

func (o outlook) exec(sql string, args ...any) {
	o.b.Helper()
	if _, err := o.conn.Exec(context.Background(), sql, args...); err != nil {
		o.b.Fatalf("%s: %v", sql, err)
	}
}

func lookAt(b *testing.B, address string) outlook {
	b.Helper()
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return outlook{b, conn}
}

// claimants are the owners of signers, who claim in batches.
type claimants struct {
	outlook
	db     *pg.DB
	batch  int
	fences []lease.Fence
	next   []uint64
	ids    [][]int64 // queued intents of each signer
	rounds int
}

func newClaimants(b *testing.B, address string, signers, batch int) *claimants {
	b.Helper()
	db := openAt(b, address, signers)
	c := &claimants{outlook: lookAt(b, address), db: db, batch: batch, next: make([]uint64, signers),
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

// race claims all that is queued, a signer beside the other.
func (c *claimants) race(b *testing.B) time.Duration {
	b.Helper()
	return together(b, len(c.fences), func(n int) error {
		for ids := c.ids[n]; len(ids) > 0; ids = ids[c.batch:] {
			claim := txm.Batch{Cursor: c.next[n], Limits: txm.Limits{Signer: round, Liquidations: 1}}
			for _, id := range ids[:c.batch] {
				claim.Claims = append(claim.Claims,
					txm.Claim{Intent: id, Kind: job.Order, Tx: bytesLike(id, c.next[n])})
				c.next[n]++
			}
			if err := txstore.NewIntents(c.db).Claim(context.Background(), c.fences[n], claim); err != nil {
				return err
			}
		}
		return nil
	})
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
	db, err := pg.Open(b.Context(), cfg, "claimants")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	return db
}

// rivals are the owners of signers under the scheme that was there first: a lease that is taken or renewed at each
// call, and a row for each nonce, which is taken in a second statement. After the broadcast a third one says that the
// nonce was used, and by which transaction.
type rivals struct {
	outlook
	conns  []*pgx.Conn
	next   []int64
	rounds int
}

const (
	rivalSchema = `CREATE SCHEMA rival;
		CREATE TABLE rival.signer_lease (
			signer VARCHAR(128) PRIMARY KEY, owner_node VARCHAR(256) NOT NULL,
			fencing_token BIGINT NOT NULL, acquired_at TIMESTAMP NOT NULL,
			expires_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
		CREATE INDEX ON rival.signer_lease (expires_at);
		CREATE INDEX ON rival.signer_lease (owner_node);
		CREATE TABLE rival.signer_nonce_allocation (
			signer VARCHAR(128) NOT NULL, nonce BIGINT NOT NULL, status VARCHAR(16) NOT NULL,
			locked_until TIMESTAMP, tx_hash VARCHAR(66),
			created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL, fencing_token BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (signer, nonce));
		CREATE INDEX ON rival.signer_nonce_allocation (signer, fencing_token)`
	rivalAcquire = `INSERT INTO rival.signer_lease (signer, owner_node, fencing_token, acquired_at, expires_at,
		updated_at)
		VALUES ($1, $2, 1, NOW(), $3, NOW())
		ON CONFLICT (signer) DO UPDATE SET
			owner_node = CASE WHEN signer_lease.expires_at < NOW() THEN $2 WHEN signer_lease.owner_node = $2 THEN $2
				ELSE signer_lease.owner_node END,
			fencing_token = CASE WHEN signer_lease.expires_at < NOW() THEN signer_lease.fencing_token + 1
				ELSE signer_lease.fencing_token END,
			acquired_at = CASE WHEN signer_lease.expires_at < NOW() OR signer_lease.owner_node = $2 THEN NOW()
				ELSE signer_lease.acquired_at END,
			expires_at = CASE WHEN signer_lease.expires_at < NOW() OR signer_lease.owner_node = $2 THEN $3
				ELSE signer_lease.expires_at END,
			updated_at = NOW()
		RETURNING fencing_token`
	rivalReserve = `INSERT INTO rival.signer_nonce_allocation (signer, nonce, status, locked_until, fencing_token,
		created_at, updated_at)
		VALUES ($1, $2, 'HELD', $3, $4, NOW(), NOW())
		ON CONFLICT (signer, nonce) DO UPDATE SET
			status = EXCLUDED.status, locked_until = EXCLUDED.locked_until, fencing_token = EXCLUDED.fencing_token,
			updated_at = NOW()
		WHERE signer_nonce_allocation.fencing_token <= EXCLUDED.fencing_token
			AND signer_nonce_allocation.status IN ('HELD', 'RELEASED')`
	rivalMarkUsed = `UPDATE rival.signer_nonce_allocation SET status = 'CONSUMED', tx_hash = $4, updated_at = NOW()
		WHERE signer = $1 AND nonce = $2 AND fencing_token <= $3`
)

func newRivals(b *testing.B, address string, signers int) *rivals {
	b.Helper()
	r := &rivals{outlook: lookAt(b, address), next: make([]int64, signers)}
	r.exec(rivalSchema)
	for range signers {
		r.conns = append(r.conns, lookAt(b, address).conn)
	}
	return r
}

// remember gives each signer its part of the past.
func (r *rivals) remember() {
	each := past / len(r.conns)
	for n := range r.conns {
		r.exec(
			`INSERT INTO rival.signer_nonce_allocation (signer, nonce, status, locked_until, tx_hash, created_at,
				fencing_token, updated_at)
			SELECT $1, n, 'CONSUMED', NOW(), '0x' || encode(sha256(n::text::bytea), 'hex'), NOW(), 1, NOW()
				FROM generate_series(0, $2::bigint - 1) n`,
			chain.Address{0x51, byte(n)}.Hex(), each)
		r.next[n] = int64(each)
	}
	r.exec(`VACUUM ANALYZE`)
}

// race takes a round of nonces, a signer beside the other, and then says of each that it was used. It returns how long
// the one took and how long the other.
func (r *rivals) race(b *testing.B) (reserving, recording time.Duration) {
	b.Helper()
	first := slices.Clone(r.next)
	reserving = together(b, len(r.conns), r.reserve)
	recording = together(b, len(r.conns), func(n int) error {
		for nonce := first[n]; nonce < r.next[n]; nonce++ {
			hash := bytesLike(nonce, uint64(nonce)).Hash.Hex()
			if err := r.one(n, rivalMarkUsed, chain.Address{0x51, byte(n)}.Hex(), nonce, rivalToken, hash); err != nil {
				return fmt.Errorf("marking nonce %d: %w", nonce, err)
			}
		}
		return nil
	})
	return reserving, recording
}

// reserve takes a round of nonces of one signer.
func (r *rivals) reserve(n int) error {
	signer := chain.Address{0x51, byte(n)}.Hex()
	for range round {
		until := time.Now().UTC().Add(time.Minute)
		var token int64
		if err := r.conns[n].QueryRow(context.Background(), rivalAcquire, signer, "node", until).
			Scan(&token); err != nil {
			return err
		}
		if err := r.one(n, rivalReserve, signer, r.next[n], until, token); err != nil {
			return fmt.Errorf("reserving nonce %d: %w", r.next[n], err)
		}
		r.next[n]++
	}
	return nil
}

// one changes one row.
func (r *rivals) one(n int, sql string, args ...any) error {
	done, err := r.conns[n].Exec(context.Background(), sql, args...)
	if err == nil && done.RowsAffected() != 1 {
		err = fmt.Errorf("%s", done)
	}
	return err
}

// rivalToken is the token of owners whose leases never run out.
const rivalToken = 1

// end now and then cleans up and counts as the server does in time.
func (r *rivals) end() {
	if r.rounds++; r.rounds%upkeep != 0 {
		return
	}
	for _, table := range []string{"signer_lease", "signer_nonce_allocation"} {
		r.exec(`VACUUM ANALYZE rival.` + table)
	}
}
