package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
)

const (
	lookEvery  = 10 * time.Second
	landedKept = 20_000 // of an hour; of a busier one the newest
)

// mark is a value of a moment (ms).
type mark struct {
	ms    uint64
	value chain.Uint
}

// What marks are of, beside signers, whose balances they are, and executions, which they count.
const (
	headAge  = "head"  // ms
	stateAge = "state" // ms
	gasPrice = "gas"   // the node's suggestion, wei
)

// past is the last hour, of what no table has and of this keeper's transactions. It is kept in memory; nobody changes
// one that is there.
type past struct {
	now     time.Time
	minutes int            // that pictures show: what has just begun would be lost at the end of an hour
	marks   map[any][]mark // the newest last
	landed  []pg.Landed    // the newest first
}

// remember looks until ctx ends.
func (c *console) remember(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for w := new(witness); ; {
		c.glance(ctx, w)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// glance asks everybody. What cannot be asked is a gap.
func (c *console) glance(ctx context.Context, w *witness) {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	seen := w.executed(ctx, c.Processes)
	age := func(ms uint64) chain.Uint { return chain.U64(uint64(max(c.Now().UnixMilli()-int64(ms), 0))) }
	if at, err := c.DB.Progress(ctx); err == nil && !at.Watermark.Hash.IsZero() {
		seen[stateAge] = age(at.Watermark.TimeMs)
	}
	landed, err := c.DB.Landed(ctx, time.Hour, landedKept)
	if err != nil {
		landed = c.past().landed
	}
	if c.Node != nil {
		if head, err := c.Node.Head(ctx); err == nil {
			seen[headAge] = age(head.TimeMs)
		}
		if wei, err := c.Node.GasPrice(ctx); err == nil {
			seen[gasPrice] = chain.U64(wei)
		}
		signers, _ := txstore.NewSigners(c.DB).List(ctx) // without the database there are none
		for _, s := range signers {
			if wei, err := c.Node.Balance(ctx, s.Signer); err == nil {
				seen[s.Signer] = wei
			}
		}
	}
	c.keep(seen, landed)
}

// keep adds what was seen to the hour, and forgets what is older.
func (c *console) keep(seen map[any]chain.Uint, landed []pg.Landed) {
	p := c.past()
	now := uint64(p.now.UnixMilli())
	next := past{marks: map[any][]mark{}, landed: landed}
	for of, marks := range p.marks {
		next.marks[of] = slices.DeleteFunc(slices.Clone(marks), func(m mark) bool {
			return m.ms+uint64(time.Hour.Milliseconds()) <= now
		})
	}
	for of, value := range seen {
		next.marks[of] = append(next.marks[of], mark{now, value})
	}
	maps.DeleteFunc(next.marks, func(_ any, marks []mark) bool { return len(marks) == 0 })
	c.hour.Store(&next)
}

// witness is the process that tells who executed what, and what it said last.
type witness struct {
	address string
	said    map[status.Executions]uint64
}

// executed counts since the look before, as the first process tells that counts: each sees all of the chain. One that
// has begun anew counts from zero.
func (w *witness) executed(ctx context.Context, processes []status.Address) map[any]chain.Uint {
	since := map[any]chain.Uint{}
	for _, p := range processes {
		now, err := status.Executed(ctx, p.URL)
		if err != nil || len(now) == 0 {
			continue
		}
		for what, n := range now {
			if before := w.said[what]; before <= n {
				n -= before
			}
			if n > 0 && w.address == p.URL {
				since[what] = chain.U64(n)
			}
		}
		w.address, w.said = p.URL, now
		break
	}
	return since
}

// past is the hour up to now.
func (c *console) past() (p past) {
	if last := c.hour.Load(); last != nil {
		p = *last
	}
	p.now, p.minutes = c.Now(), 6
	first := uint64(p.now.UnixMilli())
	for _, marks := range p.marks {
		first = min(first, marks[0].ms)
	}
	if n := len(p.landed); n > 0 {
		first = min(first, p.landed[n-1].SeenMs)
	}
	for p.minutes < 60 && p.minute(first) < 0 {
		p.minutes = min(2*p.minutes, 60)
	}
	return p
}

// minute is which of the minutes a time (ms) is in, the last of which is that of now; negative where it is older.
func (p past) minute(ms uint64) int { return p.minutes - 1 - int(p.now.Unix()/60-int64(ms/60_000)) }

// highest are the highest marks of each minute. One without any has that before it.
func (p past) highest(marks []mark) []*chain.Uint {
	values := make([]*chain.Uint, p.minutes)
	for _, m := range marks {
		if at := p.minute(m.ms); at >= 0 && at < p.minutes && (values[at] == nil || values[at].Less(m.value)) {
			values[at] = &m.value
		}
	}
	for at := 1; at < p.minutes; at++ {
		if values[at] == nil {
			values[at] = values[at-1]
		}
	}
	return values
}

// landings are marks of what landed, of what has a value.
func (p past) landings(value func(pg.Landed) (v uint64, has bool)) (marks []mark) {
	for _, l := range slices.Backward(p.landed) {
		if v, has := value(l); has {
			marks = append(marks, mark{l.SeenMs, chain.U64(v)})
		}
	}
	return marks
}

// spending is what a signer's transactions took in the hour, and over what time: since the first of them.
func (p past) spending(signer chain.Address) (wei chain.Uint, over time.Duration) {
	for _, l := range p.landed {
		if l.Signer == signer {
			wei = wei.Add(chain.U64(l.GasUsed).Mul(chain.U64(l.GasPrice)))
			over = max(p.now.Sub(time.UnixMilli(int64(l.SeenMs))), time.Minute)
		}
	}
	return wei, over
}
