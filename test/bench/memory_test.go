package bench

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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
			peaks[p.name] = append(peaks[p.name], p.resident(t))
			line += fmt.Sprintf("  %s %d MB", p.name, p.resident(t)>>20)
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
type crew []*member

type member struct {
	name, http string
	cmd        *exec.Cmd
	log        string
}

// newCrew makes topics and tables, and starts the log road as an operator does.
func newCrew(t *testing.T, node *ledger, kafka string) (c crew) {
	t.Helper()
	env := []string{
		"PERPKEEPER_KEEPER_CHAIN_ID=" + strconv.Itoa(chainID), "PERPKEEPER_CHAIN_URLS=" + node.URL,
		"PERPKEEPER_KAFKA_BROKERS=" + kafka, "PERPKEEPER_POSTGRES_URL=" + pgtest.URL(t),
		"PERPKEEPER_LOG_FORMAT=json", "PERPKEEPER_VENUE_EVENT_EMITTER=" + emitter.Hex(),
		"PERPKEEPER_VENUE_DATA_STORE=" + chain.Address{0xc0}.Hex(), "PERPKEEPER_SCANNER_START_BLOCK=1",
		"PERPKEEPER_KEEPER_LOG_PARTITIONS=1",
	}
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	prepare := exec.CommandContext(t.Context(), filepath.Join(folder, "keeperctl"), "prepare")
	prepare.Env = append(os.Environ(), env...)
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"scanner", "statevm"} {
		c = append(c, start(t, folder, name, env))
	}
	return c
}

// start runs a program of a folder until the test ends.
func start(t *testing.T, folder, name string, env []string) *member {
	t.Helper()
	m := &member{name: name, http: freeAddress(t), cmd: exec.CommandContext(t.Context(), filepath.Join(folder, name))}
	m.cmd.Env = append(append(os.Environ(), env...), "PERPKEEPER_HTTP_LISTEN="+m.http)
	m.run(t)
	return m
}

// run runs the command until the test ends.
func (m *member) run(t *testing.T) {
	t.Helper()
	m.log = filepath.Join(t.TempDir(), m.name+".log")
	out, err := os.Create(m.log)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd.Stdout, m.cmd.Stderr = out, out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.cmd.Process.Signal(os.Interrupt)
		_ = m.cmd.Wait()
		_ = out.Close()
		if text, err := os.ReadFile(m.log); err == nil && t.Failed() {
			t.Logf("%s: %s", m.name, text[max(0, len(text)-2000):])
		}
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// applied is how many logs have become state, by the block it stands at: there is one partition, and a block has as
// many logs as the other.
func (c crew) applied() float64 { return c[1].metric("statevm_block") * perBlock }

// until waits for a condition, as long as every process lives.
func (c crew) until(ready func() bool) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		<-tick.C
	}
}

// metric is the sum of a metric over its labels; 0 while it cannot be had.
func (m *member) metric(name string) (sum float64) {
	for _, one := range m.family(name) {
		sum += one.GetCounter().GetValue() + one.GetGauge().GetValue()
	}
	return sum
}

// family is a metric by its labels; nothing while it cannot be had.
func (m *member) family(name string) []*dto.Metric {
	answer, err := http.Get("http://" + m.http + "/metrics")
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil
	}
	return families[name].GetMetric()
}

// resident is how many bytes of memory the process has.
func (m *member) resident(t *testing.T) uint64 { return m.memory(t, "VmRSS") }

// memory is how many bytes the process has of a kind of memory, see memoryOf.
func (m *member) memory(t *testing.T, kind string) uint64 {
	t.Helper()
	size := memoryOf(m.cmd.Process.Pid, kind)
	if size == 0 {
		t.Fatalf("%s has ended", m.name)
	}
	return size
}
