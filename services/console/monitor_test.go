package console

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
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier"
)

// endings decodes every log as the execution of the order that its first topic names.
type endings struct{}

func (endings) Transaction(logs []chain.Log, timeMs uint64) (events []perp.Event, err error) {
	for _, l := range logs {
		events = append(events, perp.OrderEnded{Key: l.Topics[0], Status: perp.Executed,
			Stamp: perp.Stamp{Block: l.Block, Log: l.Index, TxHash: l.TxHash, TimeMs: timeMs}})
	}
	return events, nil
}

// blocks are the chain's.
type blocks chan chain.BlockRef

func (b blocks) Heads(context.Context) <-chan chain.BlockRef { return b }

// block is one of a time that is long enough after the beginning of time.
func block(n uint64) chain.BlockRef {
	return chain.BlockRef{Number: n, Hash: chain.Hash{byte(n)}, Parent: chain.Hash{byte(n - 1)},
		TimeMs: 1_000_000 + n*450}
}

// watching is the configuration of a monitor of two keepers.
func watching() Config {
	cfg := DefaultConfig()
	cfg.Keeper = wire.Config{ChainID: 7, LogPartitions: 1, JobPartitions: 1}
	cfg.Tier.Enabled, cfg.Tier.Monitor = true, true
	cfg.Tier.Peers = []tier.Peer{{Tier: 1, Signers: []chain.Address{{0x11}}},
		{Tier: 2, Signers: []chain.Address{{0x22}}}}
	return cfg
}

// publish writes messages to the only partition of a topic.
func publish(t *testing.T, client *bus.Client, topic string, messages ...wire.Message) {
	t.Helper()
	var records []bus.Record
	for _, m := range messages {
		r, err := wire.Encode([]byte("key"), m, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if _, err := client.Producer(topic).Produce(t.Context(), 0, records); err != nil {
		t.Fatal(err)
	}
}

// TIER-19: a monitor, which has neither a key nor a database, sees in the topics of its own keeper that a backup
// executes a job, and says so by the operators' webhook. When it meets what it does not understand it is not ready.
func TestMonitorSeesABackup(t *testing.T) {
	_, client := connect(t)
	h, cfg := newHook(t), watching()
	cfg.Notify.Webhook = hooked(notify.Operator, h.URL)
	if err := client.Ensure(t.Context(), bus.Specs(cfg.Keeper.Topics()...)); err != nil {
		t.Fatal(err)
	}
	// Jobs that were there before are read before anything of the chain; of later ones that is not so.
	order := chain.Hash{9}
	publish(t, client, wire.JobTopic(7), wire.Job{Job: job.Job{ID: job.OrderID(order, 1), Kind: job.Order, Key: order,
		DueSinceMs: block(1).TimeMs, Signer: chain.Address{0x33}, Evidence: job.Evidence{Block: block(1)}}})
	heads, troubles := make(blocks, 1), make(chan error, 100)
	metrics := newMonitorMetrics(prometheus.NewRegistry())
	m := newMonitor(cfg, zerolog.Nop(), metrics, client, heads, endings{}, func(why error) { troubles <- why })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	defer running.Wait()
	defer cancel()

	tx := chain.Hash{7}
	publish(t, client, wire.LogTopic(7), wire.Epoch{Number: 1}, wire.BlockEnd{Block: block(1)},
		wire.Log{Log: chain.Log{Block: 2, BlockHash: block(2).Hash, TxHash: tx, Topics: []chain.Hash{order}}},
		wire.Tx{Tx: chain.Tx{Hash: tx, From: chain.Address{0x22}, Block: 2, BlockHash: block(2).Hash, OK: true}},
		wire.BlockEnd{Block: block(2), Records: 2})
	heads <- block(2)

	eventually(t, "the webhook is told", func(context.Context) bool { return len(h.messages()) > 0 })
	if got := h.messages()[0]; got.Event != notify.KeepersAlarm || got.Alarm == nil ||
		got.Alarm.Name != string(tier.BackupExecutes) || got.Alarm.Over ||
		!strings.Contains(got.Alarm.Text, "tier 2 executed "+job.OrderID(order, 1)) {
		t.Errorf("told %+v", got)
	}
	if got := testutil.ToFloat64(metrics.alarm.WithLabelValues(string(tier.BackupExecutes))); got != 1 {
		t.Errorf("the gauge says %v", got)
	}
	if _, err := client.Producer(wire.LogTopic(7)).Produce(t.Context(), 0,
		[]bus.Record{{Key: []byte("?"), Value: []byte("?")}}); err != nil {
		t.Fatal(err)
	}
	if why := <-troubles; why != nil {
		t.Errorf("it reads, and is not ready because of %v", why)
	}
	if why := <-troubles; why == nil ||
		!strings.Contains(why.Error(), "reading evidence at "+wire.LogTopic(7)+"/0, offset 5") {
		t.Errorf("not ready because of %v", why)
	}
}

// A job that nobody executes is forgotten in the end, and one that is said again begins anew.
func TestMonitorForgets(t *testing.T) {
	s := newSeen(watching().Tier, newMonitorMetrics(prometheus.NewRegistry()).evidence)
	j := job.Job{ID: "a", Kind: job.Order, Key: chain.Hash{1}, DueSinceMs: 1, Evidence: job.Evidence{Block: block(1)}}
	s.Published(j)
	s.Read(block(1).TimeMs + uint64(remembered.Milliseconds()))
	s.alarms(block(1).TimeMs)
	if len(s.newest) != 1 {
		t.Error("forgotten too early")
	}
	s.Read(block(1).TimeMs + uint64(remembered.Milliseconds()) + 1)
	s.alarms(block(1).TimeMs)
	if len(s.newest) != 0 {
		t.Error("remembered for ever")
	}
}

// LIQ-15: that nobody executes anything for long enough calls for what is permitted, once, and only where that is
// configured.
func TestMonitorCallsForActions(t *testing.T) {
	at := time.Now()
	cfg := watching()
	cfg.Notify.Webhook = hooked(notify.Operator, "http://127.0.0.1:1")
	cfg.Emergency.Actions = []string{"notify", "pause_positions"}
	m := newMonitor(cfg, zerolog.Nop(), newMonitorMetrics(prometheus.NewRegistry()), nil, nil, nil, nil)
	head := func(ms uint64) {
		m.head.Set(chain.BlockRef{Number: 1, TimeMs: ms}, at)
		m.protocol()
	}
	idle := tier.Alarm{Name: tier.NobodyExecutes, SinceMs: 1_000_000}
	head(1_000_000)
	m.report(idle)
	head(1_000_000 + uint64(cfg.Emergency.IdleAfter.Milliseconds()) - 1)
	if n := len(m.posts[0].unsent); n != 1 {
		t.Fatalf("%d messages before the time", n)
	}
	<-m.posts[0].unsent
	head(1_000_000 + uint64(cfg.Emergency.IdleAfter.Milliseconds()))
	head(1_000_000 + 2*uint64(cfg.Emergency.IdleAfter.Milliseconds()))
	if n := len(m.posts[0].unsent); n != 1 {
		t.Fatalf("%d messages", n)
	}
	if got := <-m.posts[0].unsent; got.Event != notify.Emergency ||
		!strings.Contains(got.Alarm.Text, "keeperctl emergency run pause_positions") ||
		!strings.Contains(got.Alarm.Text, "nobody has executed anything for 2m0s") {
		t.Errorf("called for %+v", got.Alarm)
	}
	m.report(idle)
	m.report(tier.Alarm{Name: tier.NobodyExecutes, SinceMs: 1_000_000, Over: true})
	m.cfg.Emergency.Actions = []string{"pause_positions"}
	m.report(idle)
	head(9_000_000)
	if n := len(m.posts[0].unsent); n != 3 {
		t.Errorf("%d messages, although nobody wants to be told", n)
	}
}

// LIQ-15: bad debt above what is configured calls for what is permitted, once each time it rises above it, and does not
// hide that nobody executes.
func TestMonitorCallsForActionsOnBadDebt(t *testing.T) {
	cfg := watching()
	cfg.Notify.Webhook = hooked(notify.Operator, "http://127.0.0.1:1")
	cfg.Emergency.Actions = []string{"notify", "pause_positions"}
	cfg.Emergency.BadDebt = 1000
	m := newMonitor(cfg, zerolog.Nop(), newMonitorMetrics(prometheus.NewRegistry()), nil, nil, nil, nil)
	m.head.Set(chain.BlockRef{Number: 1, TimeMs: 5_000_000}, time.Now())
	for i, c := range []struct {
		usd  uint64
		told int
	}{{1000, 0}, {1001, 1}, {5000, 1}, {900, 1}, {1001, 2}} {
		m.owed.Store(c.usd)
		if m.protocol(); len(m.posts[0].unsent) != c.told {
			t.Errorf("look %d, %d USD: %d messages, want %d", i, c.usd, len(m.posts[0].unsent), c.told)
		}
	}
	if got := <-m.posts[0].unsent; !strings.Contains(got.Alarm.Text, "1001 USD were not covered within an hour") ||
		!strings.Contains(got.Alarm.Text, "keeperctl emergency run pause_positions") {
		t.Errorf("called for %+v", got.Alarm)
	}
	<-m.posts[0].unsent
	m.idleMs = 5_000_000 - uint64(cfg.Emergency.IdleAfter.Milliseconds())
	if m.protocol(); len(m.posts[0].unsent) != 1 {
		t.Error("that nobody executes is not told, because of bad debt that was")
	}
}
