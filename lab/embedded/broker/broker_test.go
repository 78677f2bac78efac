package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus"
)

// A child process runs a broker on these, until it is killed.
const (
	childDir    = "BROKER_TEST_DIR"
	childListen = "BROKER_TEST_LISTEN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, os.Getenv(childListen))
	}
	os.Exit(m.Run())
}

func child(dir, listen string) {
	b, err := broker.Start(broker.Config{DataDir: dir, Listen: []string{listen}})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	select {}
}

// spawn starts a child and returns its address and what kills it.
func spawn(t *testing.T, dir, listen string) (address string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childListen+"="+listen)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // SIGKILL; it may have ended already
		_ = cmd.Wait()         // says that it was killed
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error") {
		t.Fatalf("the child says %q: %v", line, err)
	}
	return strings.TrimSpace(line), kill
}

func guarded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, address string, adjust ...func(*bus.Config)) *bus.Client {
	t.Helper()
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{address}
	for _, a := range adjust {
		a(&cfg)
	}
	c, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Killed without warning in the middle of writes, a broker has every batch that it acknowledged, and its topics.
func TestKillKeepsWhatWasAcknowledged(t *testing.T) {
	ctx, dir := guarded(t), t.TempDir()
	address, kill := spawn(t, dir, "127.0.0.1:0")
	c := connect(t, address)
	spec := []bus.TopicSpec{{Name: "log", Partitions: 2}}
	must(t, c.Ensure(ctx, spec))

	acknowledged := make(chan int64, 1)
	started := make(chan struct{})
	writing, stop := context.WithCancel(ctx)
	go func() {
		p, n := c.Producer("log"), int64(0)
		for {
			if _, err := p.Produce(writing, 1, []bus.Record{{Value: fmt.Append(nil, n)}}); err != nil {
				acknowledged <- n
				return
			}
			if n++; n == 200 {
				close(started)
			}
		}
	}()
	<-started
	kill()
	stop()
	n := <-acknowledged

	again, _ := spawn(t, dir, address)
	if again != address {
		t.Fatalf("came back at %s, not %s", again, address)
	}
	c = connect(t, address)
	must(t, c.Verify(ctx, spec))
	r := c.Reader("log", 1, 0)
	for i := range n {
		record, err := r.Next(ctx)
		must(t, err)
		if string(record.Value) != strconv.FormatInt(i, 10) {
			t.Fatalf("offset %d holds %s", i, record.Value)
		}
	}
	_, err := c.Producer("log").Produce(ctx, 1, []bus.Record{{Value: []byte("on")}})
	must(t, err)
	t.Logf("%d acknowledged records were there after the kill", n)
}

// Six seconds are granted, and less only if the configuration says so.
func TestSessionTimeouts(t *testing.T) {
	for _, c := range []struct {
		least, asked time.Duration
		granted      bool
	}{
		{0, 6 * time.Second, true}, {0, 5 * time.Second, false}, {time.Second, time.Second, true},
	} {
		b, err := broker.Start(broker.Config{MinSessionTimeout: c.least})
		must(t, err)
		client := connect(t, b.Addr(), func(cfg *bus.Config) { cfg.SessionTimeout = c.asked })
		must(t, client.Ensure(guarded(t), []bus.TopicSpec{{Name: "log", Partitions: 1}}))
		ctx, cancel := context.WithCancel(guarded(t))
		err = client.Join(ctx, bus.GroupConfig{ID: "g", Topic: "log"},
			func(context.Context, bus.Claim) error { cancel(); return nil })
		if (err == nil) != c.granted {
			t.Errorf("least %s, asked %s: %v", c.least, c.asked, err)
		}
		b.Close()
	}
}
