package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/setting/secret"
)

// Snapshot is the state of the running keepers at one moment.
type Snapshot struct {
	At      time.Duration // since the watch began
	Now     string        // what is being played
	Console string        // the link to the Master's
	Keepers []KeeperStatus
}

// KeeperStatus is the state of one keeper.
type KeeperStatus struct {
	Role      string
	Counts    Counts
	Head      uint64
	Processes []ProcessStatus
	Jobs      JobStatus
	Executed  map[string]int // by tier, as this keeper has seen it on the chain since it started
	Trouble   string         // why its database shows nothing, empty otherwise
}

// JobStatus counts a keeper's jobs, as its own processes report them.
type JobStatus struct {
	Live, Queued, InFlight int // due at the planners' last pass; waiting for their signer; sent and not final
}

// ProcessStatus is one process: its health and its address.
type ProcessStatus struct {
	Name, HTTP, Health string
	Restarts           int
}

// Health is ready, or the first process that is not, and why.
func (v KeeperStatus) Health() string {
	for _, p := range v.Processes {
		if p.Health != ready && p.Health != standingBy {
			return p.Name + " " + p.Health
		}
	}
	return ready
}

// watch looks at a stack from outside: at its databases and its processes' pages.
type watch struct {
	stack *Stack
	began time.Time
	dbs   []*pg.DB
}

// newWatch opens the databases.
func newWatch(ctx context.Context, s *Stack) (*watch, error) {
	w := &watch{stack: s, began: time.Now()}
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
func (w *watch) Close() {
	for _, db := range w.dbs {
		db.Close()
	}
}

// lookTime bounds one question of a look.
const lookTime = 5 * time.Second

// Look asks every database and every process, all at once. It never fails: what cannot be seen is shown as such.
func (w *watch) Look(ctx context.Context) Snapshot {
	snapshot := Snapshot{At: time.Since(w.began), Console: w.stack.Keepers[0].ConsoleLink,
		Keepers: make([]KeeperStatus, len(w.dbs))}
	var asking sync.WaitGroup
	for i, db := range w.dbs {
		asking.Go(func() { snapshot.Keepers[i] = w.stack.Keepers[i].Look(ctx, db) })
	}
	asking.Wait()
	return snapshot
}

// Look asks a keeper's database and every process of it, all at once. It never fails: what cannot be seen is shown as
// such.
func (k *Keeper) Look(ctx context.Context, db *pg.DB) KeeperStatus {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	snapshot := KeeperStatus{Role: k.Role(), Processes: make([]ProcessStatus, len(k.Processes)),
		Executed: map[string]int{}}
	var asking sync.WaitGroup
	asking.Go(func() {
		var err error
		if snapshot.Counts, err = Count(ctx, db); err != nil {
			snapshot.Trouble = err.Error()
		}
	})
	shown := make([]metrics, len(k.Processes))
	for i, p := range k.Processes {
		asking.Go(func() {
			snapshot.Processes[i] = ProcessStatus{p.Name, p.HTTP, p.Health(ctx), p.Restarts()}
			shown[i], _ = p.read(ctx) // what a process does not show is not added up
		})
	}
	asking.Wait()
	for _, m := range shown {
		snapshot.Head = max(snapshot.Head, uint64(m.sums["scanner_head_number"]))
		snapshot.Jobs.Live += int(m.sums["planner_jobs_live"])
		snapshot.Jobs.Queued += int(m.sums["worker_queue_depth"])
		snapshot.Jobs.InFlight += int(m.sums["sender_in_flight"])
		for tier, n := range m.executed {
			snapshot.Executed[tier] += int(n)
		}
	}
	return snapshot
}

// Ready returns which process of the keeper is not ready, or nil.
func (k *Keeper) Ready(ctx context.Context) error {
	for _, p := range k.Processes {
		if health := p.Health(ctx); health != ready && health != standingBy {
			return fmt.Errorf("%s's %s %s", k.Role(), p.Name, health)
		}
	}
	return nil
}

// The states that a process reports when it is well: it works, or it is the copy of a scanner that waits for the other
// one to fail.
const (
	ready      = "ready"
	standingBy = "stands by"
)

// Health is "ready", "stands by", "down", or the first line of what the process reports to wait for.
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
