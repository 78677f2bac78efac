package sender

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/tier"
)

// TIER-19: a monitor without a key and without a database sees on the chain that a backup executes, and says so by its
// webhook.
func TestMonitorSeesABackup(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(1)
	master, _ := s.keeper(0)
	h := newHook(t)

	cfg := s.cfg
	cfg.Postgres.URL, cfg.Signer.DevKeys = secret.URL{}, nil
	cfg.Tier.Enabled, cfg.Tier.Monitor = true, true
	cfg.Tier.Peers = []tier.Peer{{Tier: 1, Signers: []chain.Address{master}}, {Tier: 2, Signers: []chain.Address{by}}}
	cfg.Notify.OperatorURL, cfg.Notify.Secret = secret.MustURL(h.URL), secret.New("a secret of the monitor")
	metrics := NewMetrics(prometheus.NewRegistry())
	node, err := evm.Dial(t.Context(), cfg.Keeper.ChainID, cfg.Chain, zerolog.Nop(),
		evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	m := newMonitor(cfg, testLog(t, "monitor", zerolog.DebugLevel), metrics, s.client, node)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	defer func() { cancel(); running.Wait(); node.Close() }()

	before := s.nonce(by)
	// it shares with nobody, and executes at once: what a backup does that is not where it should be
	s.sender([]secret.String{key})
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.mustEndOnce(j, by, before)
	s.eventually("the webhook is told", func(context.Context) bool { return len(h.messages()) > 0 })
	if got := h.messages()[0]; got.Event != notify.KeepersAlarm || got.Alarm == nil ||
		got.Alarm.Name != string(tier.BackupExecutes) || got.Alarm.Over {
		t.Errorf("told %+v", got)
	}
	if got := testutil.ToFloat64(metrics.alarm.WithLabelValues(string(tier.BackupExecutes))); got != 1 {
		t.Errorf("the gauge says %v", got)
	}
	if got := s.nonce(master); got != 0 {
		t.Errorf("%d transactions of the Master, who is not there", got)
	}
}

// A monitor starts without keys and database, where a sender cannot.
func TestMonitorNeedsNoKeys(t *testing.T) {
	s := newSite(t)
	cfg := s.cfg
	cfg.Postgres.URL, cfg.Signer.DevKeys = secret.URL{}, nil
	cfg.Tier.Enabled, cfg.Tier.Monitor = true, true
	cfg.Tier.Peers = []tier.Peer{{Tier: 1, Signers: []chain.Address{{1}}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := service.Run(ctx, service.Options{Name: "monitor", Log: zerolog.Nop()},
		func(sh *service.Shell) error { return Start(sh, cfg) }); err != nil {
		t.Errorf("a monitor: %v", err)
	}
	cfg.Tier.Monitor = false
	ctx, cancel = context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	if err := service.Run(ctx, service.Options{Name: "sender", Log: zerolog.Nop()},
		func(sh *service.Shell) error { return Start(sh, cfg) }); err == nil {
		t.Error("a sender without a key starts")
	}
}

// LIQ-15: that nobody executes anything for long enough calls for what is permitted, once, and only where that is
// configured.
func TestMonitorCallsForActions(t *testing.T) {
	at := time.Now()
	cfg := DefaultConfig()
	cfg.Tier.Enabled, cfg.Tier.Monitor = true, true
	cfg.Notify.OperatorURL = secret.MustURL("http://127.0.0.1:1")
	cfg.Emergency.Actions, cfg.Emergency.Automatic = []string{"notify", "pause_positions"}, true
	m := newMonitor(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), nil, nil)
	head := func(ms uint64) {
		m.horizon.Set(chain.BlockRef{Number: 1, TimeMs: ms}, at)
		m.protocol()
	}
	idle := tier.Alarm{Name: tier.NobodyExecutes, SinceMs: 1_000_000}
	head(1_000_000)
	m.tell(idle)
	head(1_000_000 + uint64(cfg.Emergency.IdleAfter.Milliseconds()) - 1)
	if n := len(m.unsent); n != 1 {
		t.Fatalf("%d messages before the time", n)
	}
	<-m.unsent
	head(1_000_000 + uint64(cfg.Emergency.IdleAfter.Milliseconds()))
	head(1_000_000 + 2*uint64(cfg.Emergency.IdleAfter.Milliseconds()))
	if n := len(m.unsent); n != 1 {
		t.Fatalf("%d messages", n)
	}
	if got := <-m.unsent; got.Event != notify.Emergency ||
		!strings.Contains(got.Alarm.Text, "keeperctl emergency run pause_positions") ||
		!strings.Contains(got.Alarm.Text, "nobody has executed anything for 2m0s") {
		t.Errorf("called for %+v", got.Alarm)
	}
	m.tell(idle)
	m.tell(tier.Alarm{Name: tier.NobodyExecutes, SinceMs: 1_000_000, Over: true})
	m.cfg.Emergency.Automatic = false
	m.tell(idle)
	head(9_000_000)
	if n := len(m.unsent); n != 3 {
		t.Errorf("%d messages, although nobody wants to be told", n)
	}
}
