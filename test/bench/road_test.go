package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/test/programs"
)

// crew are the processes of the log road.
type crew []*programs.Process

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

// until waits for a condition, as long as every process lives.
func (c crew) until(ready func() bool) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		<-tick.C
	}
}

// processorTime is what the processes have used in all.
func (c crew) processorTime(t *testing.T) (total time.Duration) {
	for _, p := range c {
		total += programs.CPU(t, p.PID())
	}
	return total
}
