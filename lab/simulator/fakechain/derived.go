package fakechain

import (
	"context"
	"errors"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// Derived is the state that one keeper has derived from what its endpoint shows, up to a block of its own. It answers
// what sender and planner ask of Postgres.
type Derived struct {
	endpoint *Endpoint
	lag      time.Duration // how far it is behind what the endpoint shows
	rev      int64         // of the last look at changes
	looked   *block        // where the state stood at that look
}

// Derived returns the state of the keeper that has the endpoint.
func (e *Endpoint) Derived() *Derived { return &Derived{endpoint: e} }

// SetLag says how far the state is behind what the endpoint shows from now on.
func (d *Derived) SetLag(lag time.Duration) {
	d.endpoint.chain.mu.Lock()
	defer d.endpoint.chain.mu.Unlock()
	d.lag = lag
}

// mark is what the state has come to. While the endpoint is down it stays where it was.
func (d *Derived) mark() headAt {
	e := d.endpoint
	ms := e.chain.nowMs()
	if e.faults.Down {
		ms = e.downMs
	}
	return e.chain.seenAt(ms, e.faults.Lag+d.lag)
}

// look asks something of the state.
func look[T any](d *Derived, ask func(c *Chain, s headAt) (T, error)) (answer T, err error) {
	c := d.endpoint.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	return ask(c, d.mark())
}

// Progress returns how far the state has come.
func (d *Derived) Progress(context.Context) (pg.Progress, error) {
	return look(d, func(_ *Chain, s headAt) (pg.Progress, error) { return d.progress(s), nil })
}

func (d *Derived) progress(s headAt) pg.Progress {
	offset := pg.Offset{Tip: s.tip.ref, Finalized: s.final.ref, Rev: d.rev}
	return pg.Progress{Generation: 1, Partitions: 1, Offsets: []pg.Offset{offset}, Watermark: s.tip.ref}
}

// Look looks up rows together.
func (d *Derived) Look(ctx context.Context, k pg.Keys) (rows pg.Rows, err error) {
	if rows.Progress, err = d.Progress(ctx); err != nil {
		return rows, err
	}
	var problems [4]error
	rows.Positions, problems[0] = findAll[perp.Position](d, perp.Positions, k.Positions)
	rows.Orders, problems[1] = findAll[perp.Order](d, perp.Orders, k.Orders)
	rows.Requests, problems[2] = findAll[perp.Request](d, perp.Requests, k.Requests)
	rows.Values, problems[3] = findAll[perp.MarketValue](d, perp.MarketValues, k.Values)
	return rows, errors.Join(problems[:]...)
}

func findAll[R perp.Row](d *Derived, table perp.Table, keys []chain.Hash) (map[chain.Hash]pg.Found[R], error) {
	all := map[chain.Hash]pg.Found[R]{}
	for _, key := range keys {
		found, err := find[R](d, table, key)
		if err != nil {
			return nil, err
		}
		all[key] = found
	}
	return all, nil
}

// Parameters looks up words of the exchange.
func (d *Derived) Parameters(_ context.Context, keys []chain.Hash) (known []perp.Parameter, err error) {
	for _, key := range keys {
		found, err := find[perp.Parameter](d, perp.Parameters, key)
		if err != nil {
			return nil, err
		}
		if found.Known {
			known = append(known, found.Row)
		}
	}
	return known, nil
}

// GlvMarkets finds none: the exchange has no GLV.
func (d *Derived) GlvMarkets(context.Context) ([]perp.MarketValue, error) { return nil, nil }

func find[R perp.Row](d *Derived, table perp.Table, key chain.Hash) (pg.Found[R], error) {
	return look(d, func(c *Chain, s headAt) (found pg.Found[R], err error) {
		found.Row, found.Known = c.row(s.tip, perp.RowKey{Table: table, Key: key}).(R)
		found.At = s.tip.ref
		return found, nil
	})
}

// Changes returns what became of the state since the last look, as pg.DB does. It remembers one look: whoever asks with
// an older one has to load everything.
func (d *Derived) Changes(_ context.Context, partitions []int, since pg.Seen) (pg.Changes, error) {
	return look(d, func(c *Chain, s headAt) (pg.Changes, error) {
		changes := pg.Changes{Seen: since, Progress: d.progress(s)}
		if !changes.HasView() {
			return changes, nil
		}
		if last, asked := since.Revs[0]; !asked || last != d.rev || d.looked == nil {
			changes.Reload = true
			return changes, nil
		}
		keys := touched(d.looked, s.tip)
		changes.Seen = d.advance(s, partitions)
		for _, key := range keys {
			enter(&changes, key, c.row(s.tip, key))
		}
		return changes, nil
	})
}

// Load gives all rows, as pg.DB does.
func (d *Derived) Load(_ context.Context, partitions []int, take func(int, perp.Row) error) (pg.Changes, error) {
	return look(d, func(c *Chain, s headAt) (pg.Changes, error) {
		changes, all := pg.Changes{Progress: d.progress(s)}, pg.Changes{}
		if !changes.HasView() {
			return changes, nil
		}
		changes.Reload, changes.Seen = true, d.advance(s, partitions)
		for _, key := range c.rows.order {
			enter(&all, key, c.row(s.tip, key))
		}
		return changes, errors.Join(give(all.Positions, take), give(all.Orders, take), give(all.Requests, take),
			give(all.Markets, take), give(all.Values, take), give(all.Parameters, take))
	})
}

// advance remembers a look.
func (d *Derived) advance(s headAt, partitions []int) pg.Seen {
	d.rev, d.looked = d.rev+1, s.tip
	return pg.Seen{Generation: 1, Partitions: partitions, Revs: map[int]int64{0: d.rev}}
}

func give[R perp.Row](d pg.Delta[R], take func(int, perp.Row) error) error {
	for _, row := range d.Changed {
		if err := take(0, row); err != nil {
			return err
		}
	}
	return nil
}

// touched lists the rows that may differ between two blocks, each once.
func touched(from, to *block) (keys []perp.RowKey) {
	seen := map[perp.RowKey]bool{}
	left, entered := path(from, to)
	for _, b := range append(left, entered...) {
		for _, key := range b.rows.keys {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// enter puts a row where a planner looks for it: only what is open is held.
func enter(c *pg.Changes, key perp.RowKey, row perp.Row) {
	switch key.Table { //nolint:exhaustive // planners hold no others
	case perp.Positions:
		p, _ := row.(perp.Position)
		note(&c.Positions, key, p, p.Status == perp.Active)
	case perp.Orders:
		o, _ := row.(perp.Order)
		note(&c.Orders, key, o, o.Status != "" && !o.Status.Final())
	case perp.Requests:
		r, _ := row.(perp.Request)
		note(&c.Requests, key, r, r.Status != "" && !r.Status.Final())
	case perp.Markets:
		m, known := row.(perp.Market)
		note(&c.Markets, key, m, known)
	case perp.MarketValues:
		v, known := row.(perp.MarketValue)
		note(&c.Values, key, v, known)
	case perp.Parameters:
		p, known := row.(perp.Parameter)
		note(&c.Parameters, key, p, known)
	}
}

func note[R perp.Row](d *pg.Delta[R], key perp.RowKey, row R, held bool) {
	switch {
	case held:
		d.Changed, d.Parts = append(d.Changed, row), append(d.Parts, 0)
	default:
		d.Removed = append(d.Removed, key.Key)
	}
}

// MostProfitable finds none: a planner of this state has all partitions, and nobody else's to ask for.
func (d *Derived) MostProfitable(context.Context, pg.Gainers) ([]perp.Position, error) {
	return nil, nil
}
