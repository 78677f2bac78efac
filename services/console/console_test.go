package console

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hangGuard ends a wait that would otherwise never end. It is no measure of anything.
const hangGuard = 90 * time.Second

// connect starts a broker and returns a client of it.
func connect(t *testing.T) (*broker.Broker, *bus.Client) {
	t.Helper()
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := bus.DefaultConfig()
	cfg.Brokers, cfg.SessionTimeout = []string{b.Addr()}, 3*time.Second
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return b, client
}

// eventually polls until ok, or fails the test when it looks hung.
func eventually(t *testing.T, what string, ok func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		}
	}
}
