package console

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hangGuard ends a wait that would otherwise never end. It is no measure of anything.
const hangGuard = 90 * time.Second

// connect starts a broker and returns a client of it.
func connect(t *testing.T) *bus.Client {
	t.Helper()
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := bus.DefaultConfig()
	cfg.Brokers, cfg.SessionTimeout, cfg.HeartbeatInterval = []string{b.Addr()}, 3*time.Second, 50*time.Millisecond
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
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

// The link of the first user leads to where browsers find the pages.
func TestLinkLeadsToTheSite(t *testing.T) {
	for want, s := range map[string]Settings{
		"http://127.0.0.1:8080": {}, "https://127.0.0.1:8080": {TLS: true},
		"http://localhost:8090":      {URL: "http://localhost:8090/"},
		"https://keeper.example.org": {URL: "https://keeper.example.org", TLS: true},
	} {
		if got := siteOf(s, "127.0.0.1:8080"); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
	if err := (Settings{Users: "u", URL: "localhost:8090"}).Validate(); err == nil {
		t.Error("an address without a scheme is taken")
	}
}
