package scanner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/failpoint"
)

// process is the scanner's binary at work, built with failpoints.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	out bytes.Buffer
}

// buildMortal builds the binary.
func buildMortal(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "scanner")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags=failpoint", "-o", binary, "./cmd/scanner").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// launch runs the binary with a configuration, to die at a point; an empty point is none.
func launch(t *testing.T, binary string, cfg Config, point string) *process {
	t.Helper()
	var urls []string
	for _, u := range cfg.Chain.URLs {
		urls = append(urls, u.Reveal())
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), binary,
		fmt.Sprintf("--keeper.chain_id=%d", cfg.Keeper.ChainID),
		fmt.Sprintf("--keeper.log_partitions=%d", cfg.Keeper.LogPartitions),
		"--chain.urls="+strings.Join(urls, ","),
		"--kafka.brokers="+strings.Join(cfg.Kafka.Brokers, ","),
		"--venue.event_emitter="+cfg.Venue.EventEmitter.Hex(), "--venue.data_store="+cfg.Venue.DataStore.Hex(),
		"--scanner.start_block=1", "--scanner.accept_reorg_to="+cfg.Scanner.AcceptReorgTo.Hex(),
		fmt.Sprintf("--scanner.backfill.max_range=%d", cfg.Scanner.Backfill.MaxRange),
		"--http.listen=127.0.0.1:0",
	)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = append(os.Environ(), failpoint.Env+"="+point)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it may have been waited for before
	})
	return p
}

// dies waits until the process has killed itself.
func (p *process) dies() {
	p.t.Helper()
	err := p.cmd.Wait()
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.Sys().(syscall.WaitStatus).
		Signal() != syscall.SIGKILL {
		p.t.Fatalf("the process ended with %v\n%s", err, &p.out)
	}
}

// stop ends the process as an operator does.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("the process ended with %v\n%s", err, &p.out)
	}
}

// points are the labels in the sources.
func points(t *testing.T) (labels []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			labels = append(labels, m[1])
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// The process is killed by SIGKILL at every labelled point of the scanner, at its first and at its third time there,
// and the next one goes on as if nothing had happened (PIPE-2). It builds a binary: KEEPER_LONG=1.
func TestProcessKilledAtEveryPoint(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("builds and kills processes: run it with KEEPER_LONG=1")
	}
	withPartitions(t, 4)
	binary := buildMortal(t)
	labels := points(t)
	if len(labels) < 12 {
		t.Fatalf("only %d points: %v", len(labels), labels)
	}
	for _, label := range labels {
		for _, nth := range []int{1, 3} {
			if nth > 1 && (label == "scanner.claim.before" || label == "scanner.claim.after") {
				continue // once in a process
			}
			t.Run(fmt.Sprintf("%s:%d", label, nth),
				func(t *testing.T) { killProcessAt(t, binary, fmt.Sprintf("%s:%d", label, nth)) })
		}
	}
}

func killProcessAt(t *testing.T, binary, point string) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	kind := strings.Split(point, ".")[1]
	switch kind {
	case "range":
		cfg = inRanges(cfg)
		d.mine(30)
		d.trade(1)
		d.mine(30)
	case "reorg":
		d.trade(1)
		p := launch(t, binary, cfg, "")
		settle(t, k, tr)
		p.stop()
		d.reorg(2, evmnode.Replay)
	case "halt", "accept":
		d.trade(1)
		d.trade(2)
		p := launch(t, binary, cfg, "")
		finalized(t, d, k, tr)
		p.stop()
		ancestor := audits(t, k)[0].blocks[d.Head().Number.Uint64()-5].hash()
		d.reorg(4, evmnode.Replay)
		if kind == "accept" {
			p := launch(t, binary, cfg, "")
			eventually(t, "every partition has halted", func() error {
				for _, a := range audits(t, k) {
					if a.halt == nil {
						return errNotYet
					}
				}
				return nil
			})
			p.stop()
			cfg.Scanner.AcceptReorgTo = ancestor
		}
		launch(t, binary, cfg, point).dies()
		cfg.Scanner.AcceptReorgTo = ancestor
		launch(t, binary, cfg, "")
		settle(t, k, tr)
		return
	default:
		d.trade(1)
	}
	launch(t, binary, cfg, point).dies()
	launch(t, binary, cfg, "")
	d.trade(3)
	settle(t, k, tr)
}
