package bench

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/test/largestate"
	"perpkeeper/test/programs"
)

const (
	// planners is how many share the positions.
	planners = 4
	// mostResident is what one of them may have had resident, as long as all of them run.
	mostResident = 1 << 30
	// longestWait is what no tick may wait for longer at a rebalance.
	longestWait = 500 * time.Millisecond
	// calm is how long ticks are looked at when nothing else happens.
	calm = 20 * time.Second
)

// Millions of positions in four planners, as processes on a broker and a database: how long they take to load,
// what they have resident, what a tick of one price costs. One of them dies, the others take over, and it comes back.
// KEEPER_POSITIONS has other numbers of positions, separated by commas; KEEPER_RESULTS names a directory for the
// figures. KEEPER_LONG=1; ten million take a quarter of an hour and 8 GB of disk.
func TestPlannersOfMillions(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: set KEEPER_LONG=1")
	}
	counts := os.Getenv("KEEPER_POSITIONS")
	if counts == "" {
		counts = "10000000"
	}
	rows := [][]string{{"positions", "planners", "load_seconds", "resident_mb_peak", "resident_mb", "load_cpu_seconds",
		"tick_ms_mean", "tick_ms_p99_below", "tick_cpu_ms", "rebalance_tick_ms_below", "rebalance_resident_mb_peak"}}
	for text := range strings.SplitSeq(counts, ",") {
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("KEEPER_POSITIONS: %v", err)
		}
		t.Run(text, func(t *testing.T) { rows = append(rows, planMany(t, count)) })
	}
	if dir := os.Getenv("KEEPER_RESULTS"); dir != "" {
		writeCSV(t, filepath.Join(dir, "planners.csv"), rows)
	}
}

// planMany measures one number of positions and returns its row.
func planMany(t *testing.T, count int) []string {
	began := time.Now()
	_, cfg := largestate.Open(t, count)
	t.Logf("%d rows in the database after %.0f s", count, time.Since(began).Seconds())
	env, kafka := plannersEnv(t, cfg.URL.Reveal())
	go quote(t.Context(), kafka)

	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	var team crew
	began = time.Now()
	for range planners {
		team = append(team, start(t, folder, "planner", env))
	}
	each := count / planners
	awaitHeld(t, team, func(held int) bool { return held >= each })
	loaded := time.Since(began)
	spent := team.processorTime(t)
	t.Logf("every planner has %d positions after %.1f s, %.1f s of the processor", each, loaded.Seconds(),
		spent.Seconds())
	awaitHeld(t, team, func(held int) bool { return held == each })

	before, used := team.ticks(), team.processorTime(t)
	<-time.After(calm)
	ticks := team.ticks().since(before)
	cost := (team.processorTime(t) - used).Seconds() / max(ticks.count, 1)
	steady, peak := highest(team.memory(t, "VmRSS")), highest(team.memory(t, "VmHWM"))
	t.Logf("%.0f ticks, %.2f ms on average, 99 of 100 within %s, %.2f ms of the processor each, whatever else is done "+
		"counted in", ticks.count, ticks.mean()*1000, ticks.quantile(0.99), cost*1000)
	t.Logf("at most %d MB resident in one, %d MB at any time", steady>>20, peak>>20)
	if peak > mostResident {
		t.Errorf("a planner had %d MB resident, more than %d", peak>>20, mostResident>>20)
	}

	slowest := rebalance(t, team, func() *programs.Process { return start(t, folder, "planner", env) }, count)
	both := highest(team.memory(t, "VmHWM"))
	t.Logf("with the rebalance at most %d MB resident in one", both>>20)
	if slowest > longestWait {
		t.Errorf("a tick waited for more than %s at a rebalance (at most %s)", longestWait, slowest)
	}
	decimals := func(value float64) string { return strconv.FormatFloat(value, 'f', 3, 64) }
	return []string{strconv.Itoa(count), strconv.Itoa(planners), decimals(loaded.Seconds()),
		strconv.FormatUint(peak>>20, 10), strconv.FormatUint(steady>>20, 10), decimals(spent.Seconds()),
		decimals(ticks.mean() * 1000), decimals(ticks.quantile(0.99).Seconds() * 1000), decimals(cost * 1000),
		decimals(slowest.Seconds() * 1000), strconv.FormatUint(both>>20, 10)}
}

// rebalance kills one planner, waits until the others have its positions, and brings it back. It returns what the
// longest tick of those others took at most.
func rebalance(t *testing.T, team crew, again func() *programs.Process, count int) time.Duration {
	t.Helper()
	stay, goes := team[:planners-1], team[planners-1]
	before := stay.ticks()
	began := time.Now()
	goes.Kill()
	awaitHeld(t, stay, func(int) bool { return stay.held() == count })
	t.Logf("one dies: the others have all positions, each once, after %.1f s", time.Since(began).Seconds())
	began = time.Now()
	team[planners-1] = again()
	awaitHeld(t, team, func(held int) bool { return held == count/planners })
	t.Logf("it comes back: each has its own after %.1f s", time.Since(began).Seconds())
	ticks := stay.ticks().since(before)
	t.Logf("%.0f ticks meanwhile, %.2f ms on average, the longest at most %s", ticks.count, ticks.mean()*1000,
		ticks.quantile(1))
	return ticks.quantile(1)
}

// plannersEnv is the configuration of planners on a broker that has all topics. Sweeps are seldom: here four planners
// would share the processors of one.
func plannersEnv(t *testing.T, database string) (env []string, kafka *bus.Client) {
	t.Helper()
	b, err := broker.Start(broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{b.Addr()}
	if kafka, err = bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	keeper := wire.Config{ChainID: chainID, LogPartitions: largestate.Parts, JobPartitions: 1}
	if err := kafka.Ensure(t.Context(), bus.Specs(keeper.Topics()...)); err != nil {
		t.Fatal(err)
	}
	return []string{
		"PERPKEEPER_KEEPER_CHAIN_ID=" + strconv.Itoa(chainID), "PERPKEEPER_KAFKA_BROKERS=" + b.Addr(),
		"PERPKEEPER_KEEPER_LOG_PARTITIONS=" + strconv.Itoa(largestate.Parts), "PERPKEEPER_KEEPER_JOB_PARTITIONS=1",
		"PERPKEEPER_POSTGRES_URL=" + database,
		"PERPKEEPER_KEEPER_SIGNERS=" + chain.Address{100}.Hex(),
		"GOGC=", // as an operator runs it, whatever this test runs with
	}, kafka
}

// quote reports a price every 10 ms, of one token after the other, until ctx ends.
func quote(ctx context.Context, kafka *bus.Client) {
	producer := kafka.Producer(wire.PriceTopic(chainID))
	send := func(token chain.Address, p perp.Uint, ms uint64) {
		r := price.Report{Token: token, Min: p, Max: p, TimeMs: ms, Source: "bench", ReceivedMs: ms}
		if record, err := wire.Encode(token[:], r.Message(), 0, 1); err == nil {
			_, _ = producer.Produce(ctx, 0, []wire.Record{record}) // what is lost is followed by the next
		}
	}
	send(largestate.Stable, largestate.StablePrice, largestate.BlockMs)
	for i := range largestate.Markets {
		send(largestate.Token(i), largestate.Price(1000), largestate.BlockMs)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			send(largestate.Token(int(n%largestate.Markets)), largestate.Price(1000+n%3), largestate.BlockMs+n)
		}
	}
}

// awaitHeld waits until every planner has as many positions as is asked for.
func awaitHeld(t *testing.T, team crew, enough func(held int) bool) {
	t.Helper()
	late := time.Now().Add(15 * time.Minute)
	team.until(func() bool {
		if time.Now().After(late) {
			t.Fatalf("planners have %d positions in all", team.held())
		}
		for _, p := range team {
			if !enough(int(p.Metric("planner_open"))) {
				return false
			}
		}
		return true
	})
}

// held is how many positions they have in all.
func (c crew) held() (held int) {
	for _, p := range c {
		held += int(p.Metric("planner_open"))
	}
	return held
}
