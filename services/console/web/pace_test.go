package web_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/services/console/web"
)

// A keeper that has more before it than any has had.
const (
	paceJobs      = 10_000 // that live
	paceSigners   = 4
	pacePositions = 100_000
	paceTokens    = 100 // with a report a second for a minute
)

// paceLimit is the p95 that no page may take longer than, in milliseconds.
const paceLimit = 300

// BenchmarkPages asks for each page as a browser does and tells the 95th percentile. It fails above the limit.
func BenchmarkPages(b *testing.B) {
	s := newSite(b, func(d *web.Deps) {
		d.PriceMaxAge, d.VolatilityWindow = time.Hour, time.Hour // reports stay fresh while it runs
	})
	s.crowd()
	s.reportMinute()
	anna := s.as("anna")
	anna.awaitPage("/market", fmt.Sprint(paceTokens))
	anna.awaitPage("/positions", "100000 open positions")
	for _, path := range append(paths, "/positions", "/job?id="+crowdJob(1).ID) {
		b.Run(path, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if status, page := anna.get(path); status != http.StatusOK {
					b.Fatalf("%d\n%s", status, page)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			p95 := float64(took[len(took)*95/100].Microseconds()) / 1000
			b.ReportMetric(p95, "p95-ms")
			if p95 > paceLimit {
				b.Errorf("%s: 95 of 100 answers take up to %.0f ms, and %d are the limit", path, p95, paceLimit)
			}
		})
	}
}

// crowdSigner is one of those that the crowd's jobs wait for.
func crowdSigner(n int) chain.Address { return chain.Address{0xa1, byte(n % paceSigners)} }

func crowdJob(n int) job.Job {
	j := someJob(0)
	j.Key = chain.Hash(sha256.Sum256(binary.BigEndian.AppendUint32(nil, uint32(n))))
	j.ID, j.Account, j.Signer = job.OrderID(j.Key, 1), chain.Address(j.Key[12:]), crowdSigner(n)
	return j
}

// crowd gives a site that many waiting jobs and open positions.
func (s *site) crowd() {
	s.t.Helper()
	ctx := s.t.Context()
	for n := range paceSigners {
		s.must(txstore.NewLeases(s.db).Register(ctx, crowdSigner(n), 56))
		_, err := txstore.NewLeases(s.db).Acquire(ctx, crowdSigner(n), lease.NewOwner("sender"), time.Hour)
		s.must(err)
	}
	for n := range paceJobs {
		_, err := txstore.NewIntents(s.db).Enqueue(ctx, crowdJob(n))
		s.must(err)
	}
	part, err := s.db.Claim(ctx, pg.ClaimRequest{Generation: 1, Partitions: 1})
	s.must(err)
	const batch = 5000
	parent := chain.Hash{6}
	for n := range pacePositions / batch {
		block := chain.BlockRef{Number: uint64(7 + n), Hash: chain.Hash{7, byte(n)}, Parent: parent,
			TimeMs: uint64(time.Now().UnixMilli())}
		parent = block.Hash
		s.expose(part, int64(n+1), block, n*batch, batch)
	}
}

// reportMinute has every token's price reported each second of a minute.
func (s *site) reportMinute() {
	s.t.Helper()
	now := uint64(time.Now().UnixMilli())
	var records []bus.Record
	for second := range uint64(60) {
		for n := range paceTokens {
			price := chain.U64(uint64(1000 + n)).Mul(perp.One)
			token := chain.Address{0x70, byte(n)}
			r, err := wire.Encode(token[:], wire.Price{Token: token, Source: "stream-1", Min: price, Max: price,
				TimeMs: now - 1000*(60-second)}, 0, 0)
			s.must(err)
			records = append(records, r)
		}
	}
	for batch := range slices.Chunk(records, 500) {
		_, err := s.client.Producer(wire.PriceTopic(s.deps.Keeper.ChainID)).Produce(s.t.Context(), 0, batch)
		s.must(err)
	}
}
