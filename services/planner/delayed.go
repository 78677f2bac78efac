package planner

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// startDelayed adds the scanner of delayed jobs to the process. Every planner scans; the rows decide who does what.
func startDelayed(sh *service.Shell, cfg Config, client *bus.Client, db *pg.DB) {
	metrics := delayed.NewMetrics(sh.Registry)
	scanner := newDelayed(cfg, metrics, sh.Log, db, handOut(newPublisher(client, cfg.Keeper)))
	sh.Go("delayed", func(ctx context.Context) error { return runDelayed(ctx, scanner, db) })
}

// registerDelayed registers the metrics for the catalogue.
func registerDelayed(reg prometheus.Registerer) { delayed.NewMetrics(reg) }

// newDelayed makes the scanner with every kind there is.
func newDelayed(cfg Config, metrics *delayed.Metrics, log zerolog.Logger, db *pg.DB, hand delayed.HandOut) *delayed.Scanner {
	store := db.Delayed()
	kinds := []delayed.Kind{
		delayed.Commissions{}, delayed.Rearm{HandOut: hand}, delayed.NewExpiries(metrics, log), delayed.Reports{Log: log},
	}
	sources := []delayed.Source{
		delayed.Bookings(db.Wallets(), cfg.Keeper.ChainID, cfg.Commission), store.Rearmings(), store.Expiries(), store.Reports(),
	}
	return delayed.NewScanner(cfg.Delayed, scannerName(), store, kinds, sources, metrics, log)
}

// scannerName tells this process from others of the keeper, for operators.
func scannerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// runDelayed scans as soon as the database can be worked with.
func runDelayed(ctx context.Context, scanner *delayed.Scanner, db *pg.DB) error {
	if err := db.AwaitSchema(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second, Factor: 2}); err != nil {
		return err
	}
	bell := db.Delayed().Bell()
	defer bell.Close()
	return scanner.Run(ctx, bell)
}

// handOut publishes one job at a time: the publisher is for one goroutine, and the scanner works on several rows at once.
func handOut(p *publisher) delayed.HandOut {
	var mu sync.Mutex
	return func(ctx context.Context, j job.Job) error {
		mu.Lock()
		defer mu.Unlock()
		return p.publish(ctx, []job.Job{j})
	}
}
