package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/programs"
)

// PIPE-8: the memory of each process while a million logs pass through it: what it was when a third had passed it must
// not have grown much when all have. The state itself stays as large as it is after that third, so what grows is held
// for no reason. KEEPER_LONG=1, some minutes.
func TestMemoryIsFlat(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: set KEEPER_LONG=1")
	}
	logs := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("KEEPER_LOGS")); err == nil {
		logs = n
	}
	kafka, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	node := newLedger(t, logs)
	run := newCrew(t, node, kafka.Addrs()[0])
	began, peaks, rows := time.Now(), map[string][]uint64{}, 0
	for passed := 0; passed < logs-2*perBlock; {
		run.until(func() bool { passed = int(run.applied()); return passed >= min(logs-2*perBlock, (rows+1)*logs/20) })
		rows++
		line := fmt.Sprintf("%7d logs %5.0f s", passed, time.Since(began).Seconds())
		for _, p := range run {
			resident := memory(t, p, "VmRSS")
			peaks[p.Name] = append(peaks[p.Name], resident)
			line += fmt.Sprintf("  %s %d MB", p.Name, resident>>20)
		}
		t.Log(line)
	}
	for name, sizes := range peaks {
		third := len(sizes) / 3
		before, after := highest(sizes[:third+1]), highest(sizes[len(sizes)-third:])
		t.Logf("%s: at most %d MB in the first third, %d MB in the last", name, before>>20, after>>20)
		if after > before+before/4+16<<20 {
			t.Errorf("the memory of %s grows: %d MB in the first third, %d MB in the last", name, before>>20, after>>20)
		}
	}
}

func highest(sizes []uint64) (most uint64) {
	for _, s := range sizes {
		most = max(most, s)
	}
	return most
}

// perBlock is how many logs a block of the venue has.
const perBlock = 21

// crew are the processes of the log road.
type crew []*programs.Process

// newCrew starts the log road as an operator does.
func newCrew(t *testing.T, node *ledger, kafka string) crew {
	t.Helper()
	env := roadEnv(t, node, kafka, pgtest.URL(t))
	prepareRoad(t, env)
	return startRoad(t, env)
}

// roadEnv is the configuration of the log road.
func roadEnv(t *testing.T, node *ledger, kafka, database string) []string {
	t.Helper()
	return []string{
		"PERPKEEPER_KEEPER_CHAIN_ID=" + strconv.Itoa(chainID), "PERPKEEPER_CHAIN_URLS=" + node.URL,
		"PERPKEEPER_KAFKA_BROKERS=" + kafka, "PERPKEEPER_POSTGRES_URL=" + database,
		"PERPKEEPER_VENUE_EVENT_EMITTER=" + emitter.Hex(), "PERPKEEPER_VENUE_DATA_STORE=" + chain.Address{0xc0}.Hex(),
		"PERPKEEPER_SCANNER_START_BLOCK=1", "PERPKEEPER_KEEPER_LOG_PARTITIONS=1",
	}
}

// prepareRoad makes topics and tables.
func prepareRoad(t *testing.T, env []string) {
	t.Helper()
	prepare := exec.CommandContext(t.Context(), filepath.Join(programFolder(t), "keeperctl"), "prepare")
	prepare.Env = append(os.Environ(), env...)
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func startRoad(t *testing.T, env []string) (c crew) {
	t.Helper()
	for _, name := range []string{"scanner", "statevm"} {
		c = append(c, start(t, programFolder(t), name, env))
	}
	return c
}

func programFolder(t *testing.T) string {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// start runs a program of a folder until the test ends.
func start(t *testing.T, folder, name string, env []string) *programs.Process {
	t.Helper()
	p := programs.NewProcess(t, name, filepath.Join(folder, name), env)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// applied is how many logs have become state, by the block it stands at: there is one partition, and a block has as
// many logs as the other.
func (c crew) applied() float64 { return c[1].Metric("statevm_block") * perBlock }

// until waits for a condition, as long as every process lives.
func (c crew) until(ready func() bool) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		<-tick.C
	}
}

// memory is how many bytes the process has of a kind of memory, see memoryOf.
func memory(t *testing.T, p *programs.Process, kind string) uint64 {
	t.Helper()
	size := memoryOf(p.PID(), kind)
	if size == 0 {
		t.Fatalf("%s has ended", p.Name)
	}
	return size
}
