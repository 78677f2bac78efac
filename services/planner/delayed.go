package planner

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// startDelayed adds the scanner of delayed jobs to the process. Every planner scans; the rows decide who does what.
func startDelayed(sh *service.Shell, cfg Config, db *pg.DB, loop chan<- rearm) {
	scanner := newDelayed(cfg, service.Node(sh.Context()), delayed.NewMetrics(sh.Registry), sh.Log, db, handOut(loop))
	sh.Go("delayed", func(ctx context.Context) error { return runDelayed(ctx, scanner, db) })
}

// registerDelayed registers the metrics for the catalogue.
func registerDelayed(reg prometheus.Registerer) { delayed.NewMetrics(reg) }

// newDelayed makes the scanner with every kind there is.
func newDelayed(cfg Config, node string, metrics *delayed.Metrics, log zerolog.Logger, db *pg.DB,
	hand delayed.HandOut) *delayed.Scanner {
	store := db.Delayed()
	kinds := []delayed.Kind{
		delayed.Commissions{}, delayed.Rearm{HandOut: hand}, delayed.NewExpiries(metrics, log),
		delayed.Reports{Log: log},
	}
	sources := []delayed.Source{
		delayed.Bookings(db.Wallets(), cfg.Keeper.ChainID, cfg.Commission), store.Rearmings(), store.Expiries(),
		store.Reports(),
	}
	return delayed.NewScanner(cfg.Delayed, node, store, kinds, sources, metrics, log)
}

// runDelayed scans as soon as the database can be worked with.
func runDelayed(ctx context.Context, scanner *delayed.Scanner, db *pg.DB) error {
	if err := db.AwaitSchema(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		Factor: 2}); err != nil {
		return err
	}
	bell := db.Delayed().Bell()
	defer bell.Close()
	return scanner.Run(ctx, bell)
}

// rearm asks the planning loop to say a job again.
type rearm struct {
	job   job.Job
	reply chan<- rearmed
}

// rearmed is the loop's answer.
type rearmed struct {
	due bool
	err error
}

// loopPatience is how long a delayed job waits for the planning loop. It holds a transaction meanwhile, which the
// server ends when it is idle for long.
const loopPatience = 2 * time.Second

// handOut has jobs said by the planning loop, which alone knows what is due at the newest state.
func handOut(loop chan<- rearm) delayed.HandOut {
	return func(ctx context.Context, j job.Job) (bool, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, loopPatience, errors.New("the planning loop is busy"))
		defer cancel()
		reply := make(chan rearmed, 1)
		select {
		case loop <- rearm{j, reply}:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		select {
		case r := <-reply:
			return r.due, r.err
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// rearm says a job again, if it is live.
func (p *Planner) rearm(ctx context.Context, r rearm) error {
	j, due := p.live.markets[r.job.Market][r.job.ID]
	var err error
	if due {
		err = p.announce(ctx, []job.Job{j}, false)
	}
	r.reply <- rearmed{due, err}
	return err
}
