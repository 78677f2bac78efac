package console

import (
	"context"
	"testing"
	"time"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hangGuard ends a wait that would otherwise never end. It is no measure of anything.
const hangGuard = 90 * time.Second

// connect starts a broker and returns a client of it.
func connect(t *testing.T) (*broker.Broker, *bus.Client) {
	t.Helper()
	b := rig.Broker(t)
	cfg := bus.DefaultConfig()
	cfg.Brokers, cfg.SessionTimeout = []string{b.Addr()}, 3*time.Second
	return b, rig.Kafka(t, cfg)
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
