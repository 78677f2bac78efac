package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/services/console/chart"
)

// The console remembers an hour of what no table has: a look every ten seconds, in memory.
const (
	lookEvery = 10 * time.Second
	looksKept = int(time.Hour / lookEvery)
	// landedAgain is how far back what landed is read again: transactions become visible some time after the moment
	// that their rows have.
	landedAgain = time.Minute
	landedKept  = 20_000 // of an hour; of a busier one the newest
)

// hour is what the last hour was like: looks, and this keeper's transactions in blocks. It is safe for concurrent use.
type hour struct {
	mutex  sync.Mutex
	looks  []glance    // oldest first
	landed []pg.Landed // newest first

	counted []map[status.Executions]uint64 // what each process said last; the looking goroutine's own
}

// glance is one look. What could not be asked is a gap.
type glance struct {
	at          time.Time
	head, state chart.Point // ages of the newest block and of the state's, ms
	suggested   chart.Point // the node's price of gas, wei
	balances    map[chain.Address]perp.Uint
	executed    map[status.Executions]uint64 // since the look before
}

// remember looks until ctx ends.
func (c *console) remember(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for span := time.Hour; ; {
		g, landed, err := c.glance(ctx, span)
		c.hour.add(g, landed, c.Now())
		if err == nil {
			span = landedAgain
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// glance asks everybody at once, and returns what landed within the span, or why that is not known.
func (c *console) glance(ctx context.Context, span time.Duration) (g glance, landed []pg.Landed, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookEvery/2)
	defer cancel()
	g = glance{at: c.Now(), balances: map[chain.Address]perp.Uint{}}
	var asking sync.WaitGroup
	asking.Go(func() {
		if at, err := c.DB.Progress(ctx); err == nil && !at.Watermark.Hash.IsZero() {
			g.state = c.since(at.Watermark.TimeMs)
		}
		landed, err = c.DB.Landed(ctx, span, landedKept)
	})
	asking.Go(func() { g.executed = c.executions(ctx) })
	if c.Node != nil {
		asking.Go(func() { c.askNode(ctx, &g) })
	}
	asking.Wait()
	return g, landed, err
}

func (c *console) askNode(ctx context.Context, g *glance) {
	if head, err := c.Node.Head(ctx); err == nil {
		g.head = c.since(head.TimeMs)
	}
	if wei, err := c.Node.GasPrice(ctx); err == nil {
		g.suggested = chart.At(perp.U64(wei))
	}
	signers, _ := txstore.NewSigners(c.DB).List(ctx) // without the database there are none
	for _, s := range signers {
		if wei, err := c.Node.Balance(ctx, s.Signer); err == nil {
			g.balances[s.Signer] = wei
		}
	}
}

func (c *console) since(ms uint64) chart.Point {
	return chart.At(perp.U64(uint64(max(c.Now().UnixMilli()-int64(ms), 0))))
}

// executions are those since the look before, as the first process tells that looks: each sees all of the chain. One
// that has begun anew counts from zero.
func (c *console) executions(ctx context.Context) (since map[status.Executions]uint64) {
	said := make([]map[status.Executions]uint64, len(c.Processes))
	for i, p := range c.Processes {
		now, err := status.Executed(ctx, p.Address)
		if err != nil || len(now) == 0 {
			continue
		}
		said[i] = now
		if i >= len(c.hour.counted) || c.hour.counted[i] == nil || since != nil {
			continue
		}
		since = map[status.Executions]uint64{}
		for what, n := range now {
			if before := c.hour.counted[i][what]; before <= n {
				n -= before
			}
			since[what] = n
		}
	}
	c.hour.counted = said
	return since
}

// add keeps a look and what has landed, and forgets what is older than an hour.
func (h *hour) add(g glance, landed []pg.Landed, now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.looks = append(h.looks, g)
	h.looks = slices.Clone(h.looks[max(len(h.looks)-looksKept, 0):])
	known := h.landed
	if len(landed) > 0 {
		oldest := landed[len(landed)-1].SeenMs
		known = slices.DeleteFunc(slices.Clone(known), func(l pg.Landed) bool { return l.SeenMs >= oldest })
	}
	all := slices.Concat(landed, known)
	from := uint64(now.Add(-time.Hour).UnixMilli())
	end := slices.IndexFunc(all, func(l pg.Landed) bool { return l.SeenMs < from })
	if end < 0 {
		end = len(all)
	}
	h.landed = all[:min(end, landedKept)]
}

// past is what is remembered, up to now, and how far pictures of it go back: what a console has just begun to remember
// would be lost at the end of a whole hour.
type past struct {
	now     time.Time
	minutes int
	looks   []glance
	landed  []pg.Landed
}

// past is read by one page, and changed by nobody.
func (h *hour) past(now time.Time) past {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	p := past{now: now, minutes: 60, looks: slices.Clone(h.looks), landed: h.landed}
	first := now
	if len(p.looks) > 0 {
		first = p.looks[0].at
	}
	if n := len(p.landed); n > 0 && p.landed[n-1].SeenMs < uint64(first.UnixMilli()) {
		first = time.UnixMilli(int64(p.landed[n-1].SeenMs))
	}
	for _, fewer := range []int{30, 15} {
		if now.Sub(first) < time.Duration(fewer)*time.Minute {
			p.minutes = fewer
		}
	}
	return p
}

// along are the texts below a picture of the past.
func (p past) along() []string {
	return []string{fmt.Sprintf("%d min ago", p.minutes), strconv.Itoa(p.minutes * 2 / 3), strconv.Itoa(p.minutes / 3), "now"}
}

// track is a row of points, one for each look there could have been. A look that came late leaves no gap.
func (p past) track(of func(glance) chart.Point) []chart.Point {
	points := make([]chart.Point, p.minutes*int(time.Minute/lookEvery))
	for _, g := range p.looks {
		at := len(points) - 1 - int(p.now.Sub(g.at)/lookEvery)
		if at < 0 || at >= len(points) {
			continue
		}
		points[at] = of(g)
		if at+1 < len(points) {
			points[at+1] = points[at]
		}
	}
	return points
}

// minute is which of the minutes a time (ms) is in, the last of which is that of now; negative where it is older.
func (p past) minute(ms uint64) int { return p.minutes - 1 - int(p.now.Unix()/60-int64(ms)/60_000) }

// byMinute are the values of each minute. One without any has those before it.
func (p past) byMinute(value func(pg.Landed) (v uint64, ok bool), pick func([]uint64) uint64) []chart.Point {
	values := map[int][]uint64{}
	for _, l := range p.landed {
		if v, ok := value(l); ok {
			at := p.minute(l.SeenMs)
			values[at] = append(values[at], v)
		}
	}
	points := make([]chart.Point, p.minutes)
	for at := range points {
		switch {
		case len(values[at]) > 0:
			points[at] = chart.At(perp.U64(pick(values[at])))
		case at > 0:
			points[at] = points[at-1]
		}
	}
	return points
}

// median is the one in the middle of values, of which there is one at least.
func median(values []uint64) uint64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// spending is what a signer's transactions took in the hour, and over what time: since the first of them.
func (p past) spending(signer chain.Address) (wei perp.Uint, over time.Duration) {
	for _, l := range p.landed {
		if l.Signer == signer {
			wei = wei.Add(perp.U64(l.GasUsed).Mul(perp.U64(l.GasPrice)))
			over = max(p.now.Sub(time.UnixMilli(int64(l.SeenMs))), time.Minute)
		}
	}
	return wei, over
}
