package sender

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/emergency"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/wire"
)

// monitor is the role of a keeper that never sends (TIER-19): its scanner, statevm and planner find every job, and this
// process holds them against what the chain shows of the others. It has no key, takes no lease, and stores no job.
type monitor struct {
	*Sender
	poster *notify.Poster // nil when operators have no webhook
	unsent chan notify.Message
	// idleMs is since when nobody executes anything, on the chain's clock; 0 while somebody does, and once that has
	// been told as an emergency.
	idleMs uint64
}

// startMonitor acquires what a monitor needs and hands its members to the shell.
func startMonitor(sh *service.Shell, cfg Config) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { client.Close(); return nil })
	node, err := evm.Dial(sh.Context(), cfg.Keeper.ChainID, cfg.Chain, sh.Log, evm.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("connecting to the chain: %w", err)
	}
	sh.OnStop("chain", func(context.Context) error { node.Close(); return nil })
	sh.Ready("chain").Note(node.OneWord())
	m := newMonitor(cfg, sh.Log, NewMetrics(sh.Registry), client, node)
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("chain", func(context.Context) error { return node.Health() })
	sh.Watch("work", m.notices.healthy)
	sh.Go("watch", m.Run)
	return nil
}

func newMonitor(cfg Config, log zerolog.Logger, metrics *Metrics, client *bus.Client, node *evm.Client) *monitor {
	m := &monitor{Sender: newSender(cfg, log, metrics, lease.Owner{}, nil, time.Now),
		unsent: make(chan notify.Message, 64)}
	m.client, m.node = client, node
	if cfg.Notify.URL(notify.Operator).IsSet() {
		m.poster = notify.NewPoster(cfg.Notify, notify.Operator)
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
	group.Go(func() error { return m.horizon.Follow(ctx, m.node.Heads(ctx)) })
	group.Go(func() error { return m.observe(ctx) })
	group.Go(func() error { return m.watch(ctx) })
	group.Go(func() error { return m.post(ctx) })
	return group.Wait()
}

// watch judges at every head, and now and then without one: a head that does not come is no reason to keep silent.
func (m *monitor) watch(ctx context.Context) error {
	for {
		head := m.horizon.Next()
		for _, a := range m.turns.Alarms() {
			m.tell(a)
		}
		m.protocol()
		timer := time.NewTimer(idle)
		select {
		case <-head:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}

// tell says an alarm to everybody: log, metric, webhook.
func (m *monitor) tell(a tier.Alarm) {
	m.metrics.alarm.WithLabelValues(string(a.Name)).Set(gauge(!a.Over))
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

// protocol says once which emergency actions it calls for that nobody executes anything (LIQ-15). It takes none: a
// monitor has neither a key nor a sender.
func (m *monitor) protocol() {
	protocol, since := m.cfg.Emergency, m.idleMs
	if !protocol.Automatic || since == 0 {
		return
	}
	calls := protocol.Recommend(emergency.Facts{Idle: m.horizon.Age(since)})
	if len(calls) == 0 {
		return
	}
	m.idleMs = 0
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
		AtMs:  m.horizon.Now(),
		Alarm: &notify.Alarm{Name: "emergency", Text: text},
	})
}

// queue has a message posted, if operators have a webhook.
func (m *monitor) queue(message notify.Message) {
	if m.poster == nil {
		return
	}
	select {
	case m.unsent <- message:
	default:
		m.log.Error().Str("message", message.ID).Msg("the operators' webhook has been away for so long that this is " +
			"not posted")
	}
}

// post tells the operators' webhook, one alarm after the other, for as long as it takes.
func (m *monitor) post(ctx context.Context) error {
	for {
		select {
		case message := <-m.unsent:
			err := m.poster.Deliver(ctx, message, func(_ int, err error, _ time.Duration) {
				m.log.Warn().Err(err).Str("message", message.ID).Msg("not told yet")
			})
			if err != nil && ctx.Err() == nil {
				m.log.Error().Err(err).Str("message", message.ID).Msg("the operators' webhook does not want this")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
