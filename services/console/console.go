package console

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// metrics are what the console counts.
type metrics struct {
	notices *noticeMetrics
	monitor *monitorMetrics
}

// newMetrics registers them.
func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{notices: newNoticeMetrics(reg), monitor: newMonitorMetrics(reg)}
}

// RegisterMetrics is newMetrics for a catalogue.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

// Start acquires what the console needs and hands its members to the shell. Pages are served by the shell, see
// [service.Shell.Handle].
func Start(sh *service.Shell, cfg Config) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { client.Close(); return nil })
	db, err := pg.Open(sh.Context(), cfg.Postgres, sh.Name)
	if err != nil {
		return fmt.Errorf("opening postgres: %w", err)
	}
	sh.OnStop("postgres", func(context.Context) error { db.Close(); return nil })
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("postgres", db.Health)

	node, err := dialChain(sh, cfg)
	if err != nil {
		return err
	}
	names := naming.New(nil, db)
	if node != nil {
		names = naming.New(node, db)
	}
	if err := startPages(sh, cfg, db, client, node, names); err != nil {
		return err
	}
	metrics := newMetrics(sh.Registry)
	n := &notifier{to: cfg.Notify.Open(), policy: cfg.Notify.Policy(), keeper: cfg.Keeper, client: client,
		places: db.Notified(), metrics: metrics.notices, names: names, log: sh.Log}
	work := sh.Ready("notices")
	sh.Go("notices", func(ctx context.Context) error {
		if err := awaitParts(ctx, cfg.Keeper, client, db, work.Fail); err != nil {
			return err
		}
		work.OK()
		return n.Run(ctx)
	})
	if !cfg.Tier.Monitor {
		return nil
	}
	return startMonitor(sh, cfg, metrics.monitor, client, node, txstore.NewEmergencies(db))
}

// dialChain prepares the way to the chain, which a monitor cannot be without. Pages without it say so.
func dialChain(sh *service.Shell, cfg Config) (*evm.Client, error) {
	if len(cfg.Chain.URLs) == 0 && !cfg.Tier.Monitor {
		return nil, nil //nolint:nilnil // no endpoint is no error
	}
	node, err := evm.Dial(sh.Context(), cfg.Keeper.ChainID, cfg.Chain, sh.Log, evm.NewMetrics(sh.Registry))
	if err != nil {
		return nil, fmt.Errorf("connecting to the chain: %w", err)
	}
	sh.OnStop("chain", func(context.Context) error { node.Close(); return nil })
	return node, nil
}

// startMonitor begins to watch the keepers of the venue.
func startMonitor(sh *service.Shell, cfg Config, metrics *monitorMetrics, client *bus.Client,
	node *evm.Client, debts debts) error {
	sh.Ready("chain").Note(node.OneWord())
	sh.Watch("chain", func(context.Context) error { return node.Health() })
	watching := sh.Ready("monitor")
	watching.OK()
	trouble := func(why error) {
		if why == nil {
			watching.OK()
			return
		}
		watching.Fail(why.Error())
	}
	m := newMonitor(cfg, sh.Log, metrics, client, node, gmx.NewDecoder().Passing(), trouble)
	m.debts = debts
	sh.Go("monitor", m.Run)
	return nil
}

// awaitParts waits for Postgres and Kafka, however long they are away, and fails at once where they are there and
// cannot serve: a schema of another version, a missing topic, another number of partitions.
func awaitParts(ctx context.Context, keeper wire.Config, client *bus.Client, db *pg.DB,
	report func(reason string)) error {
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { report(err.Error()) }}
	if err := db.AwaitSchema(ctx, policy); err != nil {
		return err
	}
	topics := keeper.Named(wire.ResultTopic(keeper.ChainID), wire.DeadLetterTopic(keeper.ChainID))
	if err := client.Verify(ctx, bus.Specs(topics...)); err != nil {
		return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
	}
	return nil
}
