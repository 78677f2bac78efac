package exposure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/due"
)

// Follower holds the open positions of the state and ranks them when asked: it reads all of them once, and then what
// has changed. It is safe for concurrent use, and does nothing while nobody asks.
type Follower struct {
	DB *pg.DB
	// Moment is the present one.
	Moment func(context.Context) (*due.Moment, error)
	Most   int // positions of a ranking
	Now    func() time.Time

	busy sync.Mutex // held by who reads; guards what is read
	seen pg.Seen
	open map[chain.Hash]perp.Position

	mutex sync.Mutex
	last  Ranking
	at    time.Time
	err   error
}

// ErrNotYet means that the first reading goes on, or the first one after nobody had looked for long.
var ErrNotYet = errors.New("the positions are being judged; they will be here in a moment")

const (
	// fresh is for how long a ranking is given to all who ask.
	fresh = 3 * time.Second
	// outdated is the age of a ranking that does not count as current: nobody has looked for that long.
	outdated = time.Minute
)

// Latest returns the newest ranking and when it was made. It waits for no reading: where the newest is old, another
// begins in the background, and the newest is returned meanwhile, unless it is outdated.
func (f *Follower) Latest(ctx context.Context) (Ranking, time.Time, error) {
	if f.stale() && f.busy.TryLock() {
		go func() {
			defer f.busy.Unlock()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			f.refresh(ctx)
		}()
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.Now().Sub(f.at) > outdated {
		return Ranking{}, f.at, ErrNotYet
	}
	return f.last, f.at, f.err
}

func (f *Follower) stale() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.Now().Sub(f.at) >= fresh
}

// refresh makes a ranking of now. It is called by one at a time.
func (f *Follower) refresh(ctx context.Context) {
	var ranking Ranking
	err := f.read(ctx)
	if err == nil {
		var m *due.Moment
		if m, err = f.Moment(ctx); err == nil {
			ranking = rank(m, maps.Values(f.open), f.Most)
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.last, f.at, f.err = ranking, f.Now(), err
}

// read takes in what has changed since the last reading.
func (f *Follower) read(ctx context.Context) error {
	progress, err := f.DB.Progress(ctx)
	if err != nil {
		return err
	}
	parts := make([]int, progress.Partitions)
	for i := range parts {
		parts[i] = i
	}
	c, err := f.DB.Changes(ctx, parts, f.seen)
	if err != nil {
		return err
	}
	if !c.HasView() {
		return fmt.Errorf("the state has no block that all partitions have (is statevm running?)%s", c.Halted)
	}
	if c.Reload {
		return f.reload(ctx, parts)
	}
	for _, key := range c.Positions.Removed {
		delete(f.open, key)
	}
	for _, p := range c.Positions.Changed {
		f.open[p.PositionKey] = p
	}
	f.seen = c.Seen
	return nil
}

func (f *Follower) reload(ctx context.Context, parts []int) error {
	open := map[chain.Hash]perp.Position{}
	c, err := f.DB.Load(ctx, parts, func(_ int, row perp.Row) error {
		if p, is := row.(perp.Position); is && p.Status == perp.Active {
			open[p.PositionKey] = p
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.open, f.seen = open, c.Seen
	return nil
}
