package planner

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/service"
)

// many is how many positions the test of size has: 20 000, 2.5 million in the long form, or POSITIONS.
func many(t *testing.T) (positions int, long bool) {
	long = os.Getenv("KEEPER_LONG") != ""
	positions = 20_000
	if long {
		positions = mostPositions
	}
	if text := os.Getenv("POSITIONS"); text != "" {
		var err error
		if positions, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return positions, long
}

// mostPositions is how many a planner is meant for: four have ten million.
const mostPositions = 2_500_000

const manyParts, manyMarkets = 16, 40

// manyPositions are positions of 2 to 40 times their collateral in all markets and on both sides, opened about the
// present price of $1000, spread over the partitions.
const manyPositions = `INSERT INTO state_g1.position SELECT sha256(int8send(i::bigint)), substr(sha256(int8send(i::bigint)), 1, 20),
	'\xbb'::bytea || set_byte('\x00', 0, (i %% 40)::int) || '\x000000000000000000000000000000000000'::bytea,
	CASE WHEN (i / 40) %% 2 = 0 THEN '\x0300000000000000000000000000000000000000'::bytea
		ELSE '\xaa'::bytea || set_byte('\x00', 0, (i %% 40)::int)
			|| '\x000000000000000000000000000000000000'::bytea END,
	(i / 80) %% 2 = 0, 'Active', usd * power(10::numeric, 30),
	trunc(usd * power(10::numeric, 18) / (1000 + 820.0 * ((i * 31::bigint) %% 1000 - 500) / 500 / leverage)),
	trunc(usd * CASE WHEN (i / 40) %% 2 = 0 THEN power(10::numeric, 6) ELSE power(10::numeric, 15) END / leverage), -1234567 - i,
	5 * power(10::numeric, 28), 123 * power(10::numeric, 18), 1234567890123456789012345,
	1234567890123456789012345, 1700000000, 0, 3, 900, 17, sha256(int8send(i::bigint)), 1700000000000, i %% 16, 3, NULL
	FROM (SELECT i, 100 + (i * 7919::bigint) %% 100000 AS usd, 2 + i %% 38 AS leverage FROM generate_series(1, %d) i) AS s`

// crowded is a database with that many positions, all at one block.
func crowded(t *testing.T, positions int) *pg.DB {
	t.Helper()
	cfg := pgtest.Config(t)
	db, err := pg.Open(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	block := pg.AppliedBlock{Block: pg.Block{Verified: true,
		BlockRef: chain.BlockRef{Number: 1000, Hash: chain.Hash{1}, Parent: chain.Hash{2}, TimeMs: nowMs}}}
	for part := range manyParts {
		p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partition: part, Partitions: manyParts})
		if err != nil {
			t.Fatal(err)
		}
		b := block
		if part == 0 {
			for _, row := range manyRows() {
				b.Changes = append(b.Changes, pg.Change{After: row})
			}
		}
		if err := p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{b}}); err != nil {
			t.Fatal(err)
		}
	}
	// Keeping the indexes as rows come would take most of the time; those of keys and accounts nobody here asks.
	pgtest.Tamper(t, cfg.URL.Reveal(), `ALTER TABLE state_g1.position DROP CONSTRAINT position_pkey`,
		`DROP INDEX state_g1.position_open, state_g1.position_rev, state_g1.position_account`,
		fmt.Sprintf(manyPositions, positions),
		`CREATE INDEX position_open ON state_g1.position (part) WHERE status = 'Active' AND deleted_at IS NULL`,
		`CREATE INDEX position_rev ON state_g1.position (part, rev)`, `VACUUM ANALYZE state_g1.position`)
	return db
}

// manyRows are the markets, with measures and parameters of about GMX's larger ones.
func manyRows() (rows []perp.Row) {
	set := func(name string, value perp.Uint, args ...chain.Hash) {
		rows = append(rows, perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: value.Bytes32()})
	}
	set("MIN_COLLATERAL_USD", perp.Pow10(30))
	for i := range byte(manyMarkets) {
		m := perp.Market{MarketToken: chain.Address{0xbb, i}, IndexToken: manyToken(i), LongToken: manyToken(i),
			ShortToken: usdc}
		rows = append(rows, m)
		key := m.MarketToken.Hash()
		put := func(measure perp.Measure, token chain.Address, isLong bool, value perp.Uint) {
			rows = append(rows, perp.MarketValue{Measure: measure, Scope: key, Token: token, IsLong: isLong,
				Value: value.Int(), Stamp: perp.Stamp{Block: 1000, TimeMs: nowMs}})
		}
		set("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", perp.Pow10(28).Div(perp.U64(2)), key)
		put(perp.FundingFactorPerSecond, chain.Address{}, false, perp.Uint{})
		for _, is := range []bool{false, true} {
			set("POSITION_FEE_FACTOR", perp.Pow10(26).Mul(perp.U64(6)), key, perp.BoolWord(is))
			put(perp.CumulativeBorrowingFactor, chain.Address{}, is, perp.U64(5).Mul(perp.Pow10(28)))
			for _, token := range []chain.Address{m.LongToken, usdc} {
				interest := perp.U64(40_000_000).Mul(perp.One)
				put(perp.OpenInterest, token, is, interest)
				put(perp.FundingFeeAmountPerSize, token, is, perp.U64(123).Mul(perp.Pow10(18)))
				put(perp.OpenInterestInTokens, token, is, interest.Div(dollarsPerEther(1000)))
			}
		}
		put(perp.PoolAmount, m.LongToken, false, perp.U64(200_000).Mul(perp.Pow10(18)))
		put(perp.PoolAmount, usdc, false, perp.U64(200_000_000).Mul(perp.Pow10(6)))
	}
	return rows
}

func manyToken(market byte) chain.Address { return chain.Address{0xaa, market} }

// longestTick keeps the longest of the ticks.
type longestTick struct {
	prometheus.Histogram
	mu    sync.Mutex
	count int
	most  float64
}

func (l *longestTick) Observe(seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.most = l.count+1, max(l.most, seconds)
}

func (l *longestTick) seen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// take returns the longest since the last call.
func (l *longestTick) take() (count int, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count, most = l.count, time.Duration(l.most*float64(time.Second))
	l.count, l.most = 0, 0
	return count, most
}

// heapPeak follows the heap in use until the returned function is called.
func heapPeak() (stop func() uint64) {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-peak }
}

// A planner of millions of positions is ready within half a minute, and a rebalance stops no tick: what comes is loaded
// beside, what goes is let go, and what stays is planned meanwhile. The long form demands it, and is for a quiet machine:
// what others do is seconds of a tick.
func TestManyPositions(t *testing.T) {
	positions, long := many(t)
	if long {
		collectOften()
	}
	db := crowded(t, positions)
	p := newPlanner(DefaultConfig(), zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), db)
	ticks := &longestTick{Histogram: p.metrics.ticks}
	p.metrics.ticks = ticks
	p.stateReady, p.jobsReady = new(service.Condition), new(service.Condition)
	p.publisher = speech(func(context.Context, []job.Job) error { return nil })
	d := fixture{quotes: p.quotes}
	for i := range byte(manyMarkets) {
		d.report(manyToken(i), dollarsPerEther(1000), nowMs)
	}
	d.report(usdc, perp.Pow10(24), nowMs)

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = p.plan(ctx, make(chan struct{})) })
	running.Go(func() {
		for ms := uint64(nowMs); ctx.Err() == nil; ms++ {
			d.report(manyToken(byte(ms%manyMarkets)), dollarsPerEther(1000+ms%3), ms)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	holds := func(want int) time.Duration {
		began := time.Now()
		open := p.metrics.open.WithLabelValues("positions")
		for testutil.ToFloat64(open) != float64(want) || ticks.seen() < 3 {
			if time.Since(began) > 10*time.Minute {
				t.Fatalf("no %d positions after %s", want, time.Since(began))
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return time.Since(began)
	}

	// Of more positions than a planner is meant for it gets its share.
	share := min(manyParts, manyParts*mostPositions/positions)
	each := positions / manyParts
	mine := make([]int, share)
	for i := range mine {
		mine[i] = i
	}
	peak, before := heapPeak(), processorTime()
	p.shards.assign(mine)
	took, heap := holds(each*share), peak()
	count, most := ticks.take()
	t.Logf("%d of %d positions: loaded in %s, %s of the processor, heap in use at most %d MB, longest of %d ticks %s",
		each*share, positions, took, processorTime()-before, heap>>20, count, most)
	if long && (took > 30*time.Second || heap > 1200<<20) {
		t.Error("the load takes more than 30 s or 1200 MB")
	}
	for _, step := range []struct {
		name     string
		mine     []int
		handover time.Duration
		want     int // partitions
	}{
		{"a generation of the group ends", nil, time.Hour, share},
		{"another begins", mine, time.Hour, share},
		{"a quarter of the partitions goes", mine[:share-share/4], 0, share - share/4},
		{"it comes back", mine, 0, share},
	} {
		ticks.take()
		p.shards.mu.Lock()
		p.shards.handover = step.handover
		p.shards.mu.Unlock()
		p.shards.assign(step.mine)
		took := holds(each * step.want)
		count, most := ticks.take()
		t.Logf("%s: %s, longest of %d ticks %s", step.name, took, count, most)
		if long && most > 500*time.Millisecond {
			t.Errorf("%s: a tick took %s", step.name, most)
		}
	}
	t.Logf("memory of the process: %s", residentPeak(t))
	if share < manyParts {
		began := time.Now()
		if _, err := db.MostProfitable(t.Context(), pg.Gainers{Market: chain.Address{0xbb, 1}, IsLong: true,
			Price: dollarsPerEther(1000), Except: mine, Most: elsewhereMost}); err != nil {
			t.Fatal(err)
		}
		t.Logf("the most profitable of a side in the other partitions: %s", time.Since(began))
	}
}

// processorTime is what this process has used: unlike the clock's it is the same on a busy machine.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// residentPeak is what the kernel says of the process: the most it has ever had resident.
func residentPeak(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "not known here"
	}
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == "VmHWM" {
			return "at most " + strings.TrimSpace(value)
		}
	}
	return "not known here"
}
