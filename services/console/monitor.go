package console

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/evidence"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/headtrack"
)

// monitor watches the keepers of a venue from one that never sends (TIER-19): its scanner, statevm and planner find
// every job, and the monitor holds them against what the chain shows of the others. It has no key, takes no lease, and
// stores no job.
type monitor struct {
	cfg     Config
	log     zerolog.Logger
	metrics *monitorMetrics
	client  *bus.Client
	node    heads
	head    *headtrack.Tracker
	seen    *seen
	decoder execution.Decoder
	trouble func(why error) // for readiness
	posts   []*alarmPost    // one for each receiver of the operators
	// idleMs is since when nobody executes anything, on the chain's clock; 0 while somebody does, and once that has
	// been reported as an emergency.
	idleMs uint64
	// What positions did not cover, of late; nil debts for a monitor that does not look.
	debts        debts
	owed         atomic.Uint64
	debtReported bool
}

// heads reports the chain's newest blocks.
type heads interface {
	Heads(ctx context.Context) <-chan chain.BlockRef
}

// monitorMetrics are the metrics of a monitor.
type monitorMetrics struct {
	evidence *evidence.Metrics
	alarm    *prometheus.GaugeVec
}

func newMonitorMetrics(reg prometheus.Registerer) *monitorMetrics {
	return &monitorMetrics{
		evidence: evidence.NewMetrics(reg),
		alarm: metric.In{Registerer: reg}.Gauges("monitor_alarm",
			"1 while the monitor finds this wrong with its venue's keepers.", "alarm"),
	}
}

func newMonitor(cfg Config, log zerolog.Logger, metrics *monitorMetrics, client *bus.Client, node heads,
	decoder execution.Decoder, trouble func(why error)) *monitor {
	m := &monitor{cfg: cfg, log: log, metrics: metrics, client: client, node: node, head: headtrack.New(time.Now),
		seen: newSeen(cfg.Tier, metrics.evidence), decoder: decoder, trouble: trouble}
	for _, to := range cfg.Notify.For(notify.Operator) {
		m.posts = append(m.posts, newAlarmPost(to, cfg.Notify.Policy(), log))
	}
	return m
}

// Run watches until ctx ends.
func (m *monitor) Run(ctx context.Context) error {
	keeper := m.cfg.Keeper
	topics := keeper.Named(wire.JobTopic(keeper.ChainID), wire.LogTopic(keeper.ChainID))
	if err := m.client.Verify(ctx, bus.Specs(topics...)); err != nil {
		return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
	}
	m.log.Info().Int("tiers", m.cfg.Tier.Tiers).Msg("watching; this keeper never sends")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.head.Follow(ctx, m.node.Heads(ctx)) })
	group.Go(func() error { return m.read(ctx) })
	group.Go(func() error { return m.watch(ctx) })
	for _, p := range m.posts {
		group.Go(func() error { return p.run(ctx) })
	}
	if m.debts != nil && m.cfg.Emergency.Permits(emergency.Notify) && m.cfg.Emergency.BadDebt > 0 {
		group.Go(func() error { return m.followDebt(ctx) })
	}
	return group.Wait()
}

// read takes in the evidence until ctx ends. While the reader has met something that it does not understand the monitor
// is blind, and reports that.
func (m *monitor) read(ctx context.Context) error {
	pauses := retry.Policy{Initial: 10 * time.Second, Max: time.Minute}
	return evidence.Follow(ctx, pauses, func() *evidence.Reader {
		return evidence.NewReader(m.client, m.cfg.Keeper, m.decoder, m.seen, m.passOver)
	}, func(why error) {
		if why != nil {
			m.log.Error().Err(why).Msg("the keepers are not watched until the evidence is read anew")
		}
		m.trouble(why)
	})
}

// passOver reports a record of the job topic that nobody can read. The sender that owns the partition sets it aside,
// where there is one.
func (m *monitor) passOver(topic string, r bus.Record, why error) {
	m.log.Error().Err(why).Str("topic", topic).Int("partition", r.Partition).Int64("offset", r.Offset).
		Msg("passing over a record that nobody can read")
}

// rest is how long the monitor waits for a head before it judges without one.
const rest = 2 * time.Second

// watch judges at every head, and now and then without one: a head that does not come is no reason to keep silent.
func (m *monitor) watch(ctx context.Context) error {
	for {
		head := m.head.Next()
		for _, a := range m.seen.alarms(m.head.Now()) {
			m.report(a)
		}
		m.protocol()
		select {
		case <-head:
		case <-time.After(rest):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// report raises an alarm everywhere: log, metric, receivers of the operators.
func (m *monitor) report(a tier.Alarm) {
	progress := 1.0
	if a.Over {
		progress = 0
	}
	m.metrics.alarm.WithLabelValues(string(a.Name)).Set(progress)
	level := zerolog.WarnLevel
	switch {
	case a.Over:
		level = zerolog.InfoLevel
	case a.Name.Critical():
		level = zerolog.ErrorLevel
	}
	m.log.WithLevel(level).Bool("critical", a.Name.Critical() && !a.Over).Str("alarm", string(a.Name)).
		Bool("over", a.Over).Msg(a.Text)
	if a.Name == tier.NobodyExecutes {
		if m.idleMs = a.SinceMs; a.Over {
			m.idleMs = 0
		}
	}
	m.queue(messageOf(m.cfg.Keeper.ChainID, a))
}

// protocol reports once which emergency actions it calls for that nobody executes anything, or that positions are
// closed without covering their costs (LIQ-15). It takes none: a monitor has neither a key nor a sender.
func (m *monitor) protocol() {
	protocol, since := m.cfg.Emergency, m.idleMs
	if !protocol.Permits(emergency.Notify) {
		return
	}
	facts := emergency.Facts{BadDebt: m.debt()}
	if since != 0 {
		facts.Idle = m.head.Age(since)
	}
	calls := protocol.Recommend(facts)
	if len(calls) == 0 {
		return
	}
	if facts.Idle >= protocol.IdleAfter {
		m.idleMs = 0
	} else {
		since = m.head.Now() // of what is not covered now
	}
	m.debtReported = facts.BadDebt > 0
	var todo []string
	for _, c := range calls {
		if c.Action != emergency.Notify {
			todo = append(todo, fmt.Sprintf("keeperctl emergency run %s CAUSE", c.Action))
		}
	}
	text := fmt.Sprintf("%s. Called for: %s (docs/runbooks/emergency.md)", calls[0].Cause, strings.Join(todo, "; "))
	m.log.Error().Bool("critical", true).Msg(text)
	m.queue(notify.Message{
		ID: fmt.Sprintf("emergency:%d", since), Event: notify.Emergency, ChainID: m.cfg.Keeper.ChainID,
		AtMs:  m.head.Now(),
		Alarm: &notify.Alarm{Name: "emergency", Text: text},
	})
}

// queue has a message delivered to every receiver of the operators.
func (m *monitor) queue(message notify.Message) {
	for _, p := range m.posts {
		p.queue(message)
	}
}

func messageOf(chainID uint64, a tier.Alarm) notify.Message {
	id := fmt.Sprintf("%s:%d", a.Name, a.SinceMs)
	if a.Over {
		id += ":over"
	}
	return notify.Message{
		ID: id, Event: notify.KeepersAlarm, ChainID: chainID, AtMs: a.SinceMs,
		Alarm: &notify.Alarm{Name: string(a.Name), Text: a.Text, Over: a.Over},
	}
}
