package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/secret"
)

// Sight is what one look at the running keepers shows.
type Sight struct {
	At      time.Duration // since the watch began
	Now     string        // what is being played
	Keepers []KeeperSight
}

// KeeperSight is one keeper.
type KeeperSight struct {
	Role      string
	Overview  pg.Overview
	Head      uint64
	Processes []ProcessSight
	Jobs      JobSight
	Executed  map[string]int // by tier, as this keeper has seen it on the chain since it started
	Trouble   string         // why its database shows nothing, empty otherwise
}

// JobSight is where a keeper's jobs stand, by its own processes' word.
type JobSight struct {
	Live, Queued, InFlight int // due at the planners' last pass; waiting for their signer; sent and not final
}

// ProcessSight is one process: its health and its address.
type ProcessSight struct {
	Name, HTTP, Health string
	Restarts           int
}

// Health is ready, or the first process that is not and what it says.
func (v KeeperSight) Health() string {
	for _, p := range v.Processes {
		if p.Health != ready && p.Health != standingBy {
			return p.Name + " " + p.Health
		}
	}
	return ready
}

// Watch looks at a stack from outside: at its databases and its processes' pages.
type Watch struct {
	stack *Stack
	began time.Time
	dbs   []*pg.DB
}

// NewWatch opens the databases.
func NewWatch(ctx context.Context, s *Stack) (*Watch, error) {
	w := &Watch{stack: s, began: time.Now()}
	for _, k := range s.Keepers {
		cfg := pg.DefaultConfig()
		cfg.URL, cfg.MaxConns = secret.MustURL(k.Postgres), 2
		db, err := pg.Open(ctx, cfg, "demo")
		if err != nil {
			w.Close()
			return nil, err
		}
		w.dbs = append(w.dbs, db)
	}
	return w, nil
}

// Close closes the databases.
func (w *Watch) Close() {
	for _, db := range w.dbs {
		db.Close()
	}
}

// lookTime bounds one question of a look.
const lookTime = 5 * time.Second

// Look asks every database and every process, all at once. It never fails: what cannot be seen is shown as such.
func (w *Watch) Look(ctx context.Context) Sight {
	sight := Sight{At: time.Since(w.began), Keepers: make([]KeeperSight, len(w.dbs))}
	var asking sync.WaitGroup
	for i, db := range w.dbs {
		asking.Go(func() { sight.Keepers[i] = w.stack.Keepers[i].Look(ctx, db) })
	}
	asking.Wait()
	return sight
}

// Look asks a keeper's database and every process of it, all at once. It never fails: what cannot be seen is shown as
// such.
func (k *Keeper) Look(ctx context.Context, db *pg.DB) KeeperSight {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	sight := KeeperSight{Role: k.Role(), Processes: make([]ProcessSight, len(k.Processes)), Executed: map[string]int{}}
	var asking sync.WaitGroup
	asking.Go(func() {
		var err error
		if sight.Overview, err = db.Overview(ctx); err != nil {
			sight.Trouble = err.Error()
		}
	})
	shown := make([]metrics, len(k.Processes))
	for i, p := range k.Processes {
		asking.Go(func() {
			sight.Processes[i] = ProcessSight{p.Name, p.HTTP, p.Health(ctx), p.Restarts()}
			shown[i], _ = p.read(ctx) // what a process does not show is not added up
		})
	}
	asking.Wait()
	for _, m := range shown {
		sight.Head = max(sight.Head, uint64(m.sums["scanner_head_number"]))
		sight.Jobs.Live += int(m.sums["planner_jobs_live"])
		sight.Jobs.Queued += int(m.sums["worker_queue_depth"])
		sight.Jobs.InFlight += int(m.sums["sender_in_flight"])
		for tier, n := range m.executed {
			sight.Executed[tier] += int(n)
		}
	}
	return sight
}

// Ready says which process of the keeper is not ready.
func (k *Keeper) Ready(ctx context.Context) error {
	for _, p := range k.Processes {
		if health := p.Health(ctx); health != ready && health != standingBy {
			return fmt.Errorf("%s's %s %s", k.Role(), p.Name, health)
		}
	}
	return nil
}

// What a process that is well says of itself: it works, or it is the copy of a scanner that waits for the other one to
// fail.
const (
	ready      = "ready"
	standingBy = "stands by"
)

// Health is "ready", "stands by", "down", or the first line of what the process says it waits for.
func (p *Process) Health(ctx context.Context) string {
	text, status, err := get(ctx, "http://"+p.HTTP+"/readyz")
	switch {
	case err != nil:
		return "down"
	case status == http.StatusOK:
		return ready
	case p.Metrics(ctx)["scanner_standing_by"] > 0:
		return standingBy
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return "waits: " + first
}
