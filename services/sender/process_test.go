package sender

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/secret"
)

// process is the sender's binary at work.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	out bytes.Buffer
}

// buildBinary builds the sender, with the points at which it can be told to kill itself or as it is shipped.
func buildBinary(t testing.TB, tags string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sender")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags="+tags, "-o", binary, "./cmd/sender").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// launch starts the binary with the site's configuration, to die at a point; an empty point is none.
func (s *site) launch(binary string, key secret.String, point string, settings ...string) *process {
	s.t.Helper()
	c := s.cfg
	var urls []string
	for _, u := range c.Chain.URLs {
		urls = append(urls, u.Reveal())
	}
	p := &process{t: s.t, cmd: exec.CommandContext(s.t.Context(), binary)}
	p.cmd.Env = append(os.Environ(), failpoint.Env+"="+point)
	for _, setting := range append([]string{
		fmt.Sprintf("KEEPER_CHAIN_ID=%d", c.Keeper.ChainID),
		fmt.Sprintf("KEEPER_LOG_PARTITIONS=%d", c.Keeper.LogPartitions),
		fmt.Sprintf("KEEPER_JOB_PARTITIONS=%d", c.Keeper.JobPartitions),
		"CHAIN_URLS=" + strings.Join(urls, ","),
		"KAFKA_BROKERS=" + strings.Join(c.Kafka.Brokers, ","),
		fmt.Sprintf("KAFKA_SESSION_TIMEOUT=%s", c.Kafka.SessionTimeout),
		"POSTGRES_URL=" + c.Postgres.URL.Reveal(),
		"VENUE_DATA_STORE=" + c.Venue.DataStore.Hex(),
		"SIGNER_DEV=true", "SIGNER_DEV_KEYS=" + key.Reveal(),
		"SENDER_MODE=" + c.Sender.Mode, fmt.Sprintf("SENDER_LEASE_TTL=%s", max(c.Sender.LeaseTTL, 3*time.Second)),
		fmt.Sprintf("SENDER_MAX_LAG=%s", c.Sender.MaxLag),
		"HTTP_LISTEN=127.0.0.1:0",
	}, settings...) {
		p.cmd.Env = append(p.cmd.Env, "PERPKEEPER_"+setting)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it may have been waited for before
	})
	return p
}

// dies waits until the process was killed, by itself or by the test.
func (p *process) dies() {
	p.t.Helper()
	guard := time.AfterFunc(hangGuard, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	defer guard.Stop()
	err := p.cmd.Wait()
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		text := p.out.String()
		p.t.Fatalf("the process ended with %v\n%s", err, text[max(0, len(text)-4000):])
	}
}
