package planner

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// startDelayed adds the scanner of delayed jobs to the process. Every planner scans; the rows decide who does what.
func startDelayed(sh *service.Shell, cfg Config, db *pg.DB) {
	scanner := newDelayed(cfg, service.Node(sh.Context()), delayed.NewMetrics(sh.Registry), sh.Log, db)
	sh.Go("delayed", func(ctx context.Context) error { return runDelayed(ctx, scanner, db) })
	keep := cfg.Delayed.Keep
	sh.Go("forget", func(ctx context.Context) error { return forget(ctx, db.Delayed(), keep, sh.Log) })
}

// forgetPause lies between two looks for delayed jobs that were done long ago: each look is at all of them.
const forgetPause = time.Hour

// forget has such jobs deleted until ctx ends. What fails is tried again after the next pause.
func forget(ctx context.Context, store pg.Delayed, keep time.Duration, log zerolog.Logger) error {
	for retry.Sleep(ctx, forgetPause) {
		switch n, err := store.Forget(ctx, keep); {
		case ctx.Err() != nil:
		case err != nil:
			log.Warn().Err(err).Msg("delayed jobs that were done long ago stay for now")
		case n > 0:
			log.Info().Int("rows", n).Msg("delayed jobs that were done long ago are deleted")
		}
	}
	return context.Cause(ctx)
}

// registerDelayed registers the metrics for the catalogue.
func registerDelayed(reg prometheus.Registerer) { delayed.NewMetrics(reg) }

// newDelayed makes the scanner with every kind there is.
func newDelayed(cfg Config, node string, metrics *delayed.Metrics, log zerolog.Logger,
	db *pg.DB) *delayed.Scanner {
	store := db.Delayed()
	kinds := []delayed.Kind{
		delayed.Commissions{}, delayed.Expiries{Log: log}, delayed.Reports{Log: log},
	}
	sources := []delayed.Source{
		delayed.Bookings(db.Wallets(), cfg.Keeper.ChainID, cfg.Commission), store.Expiries(),
		store.Reports(),
	}
	return delayed.NewScanner(cfg.Delayed, node, store, kinds, sources, metrics, log)
}

// runDelayed scans as soon as the database can be worked with.
func runDelayed(ctx context.Context, scanner *delayed.Scanner, db *pg.DB) error {
	if err := db.AwaitSchema(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second}); err != nil {
		return err
	}
	bell := db.Delayed().Bell()
	defer bell.Close()
	return scanner.Run(ctx, bell)
}
