package liquidation

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// policy is a way of finding liquidatable positions on a path of prices. Look is called at every tick and returns what
// it finds then.
type policy struct {
	name string
	look func(ms uint64, moved chain.Address, view *perp.View) []chain.Hash
	// closed removes a position that is gone from the index; the others look at its status.
	closed func(key chain.Hash)

	spent  time.Duration
	delays []uint64 // ms from the first tick at which a position was liquidatable to the one at which it was found
	missed int      // positions that were liquidatable, and had recovered before they were found
	found  map[chain.Hash]bool
}

// BenchmarkPolicies runs four policies side by side on one path: the index, plain scans every 10 s and every 1.6 s, and
// a policy that files positions by their distance from liquidation and looks at far ones rarely. Prices tick ten times
// a second, one token each; now and then one gaps by up to 8 %, half of the times to come back within seconds.
func BenchmarkPolicies(b *testing.B) {
	const positions, markets, ticks = 10_000, 10, 6000
	for b.Loop() {
		c := newCrowd(markets, positions)
		policies := []*policy{indexPolicy(c), scanPolicy(c, "plain scan every 10 s", 10_000),
			scanPolicy(c, "plain scan every 1.6 s", 1_600), bandPolicy(c)}
		path := newPath(markets)
		since := map[chain.Hash]uint64{} // when each position that is liquidatable now became so
		for tick := range uint64(ticks) {
			ms := tick * 100
			i := path.step(tick)
			c.price(c.tokens[i], path.dollars[i])
			view, market := c.view(ms/1000), chain.Address{0xbb, byte(i)}
			c.close(policies[0], since, ms)
			for n, p := range policies {
				began := time.Now()
				got := p.look(ms, market, view)
				p.spent += time.Since(began)
				if n == 0 {
					policies[0].truth(c, policies, since, got, market, ms)
				}
				p.note(got, since, ms)
			}
		}
		b.Log("\n" + table(policies, ticks))
	}
}

// close takes positions out that have been liquidatable for half a minute: some keeper has liquidated them.
func (c *crowd) close(index *policy, since map[chain.Hash]uint64, ms uint64) {
	for key, at := range since {
		if ms-at > 30_000 {
			c.positions[number(key)].Status = perp.Closed
			index.closed(key)
			delete(since, key)
		}
	}
}

// number is a position's place in the crowd.
func number(key chain.Hash) uint64 { return binary.BigEndian.Uint64(key[:8]) }

// truth keeps since by what the index found in a market: the property tests say that it is all there is. Whoever had
// not found a position that is no longer liquidatable has missed it.
func (p *policy) truth(c *crowd, all []*policy, since map[chain.Hash]uint64, now []chain.Hash, market chain.Address,
	ms uint64) {
	liquidatable := map[chain.Hash]bool{}
	for _, key := range now {
		liquidatable[key] = true
		if _, known := since[key]; !known {
			since[key] = ms
			for _, each := range all {
				delete(each.found, key)
			}
		}
	}
	for key := range since {
		if !liquidatable[key] && c.marketOf(key) == market {
			for _, each := range all {
				if !each.found[key] {
					each.missed++
				}
			}
			delete(since, key)
		}
	}
}

func (p *policy) note(found []chain.Hash, since map[chain.Hash]uint64, ms uint64) {
	for _, key := range found {
		if at, is := since[key]; is && !p.found[key] {
			p.found[key] = true
			p.delays = append(p.delays, ms-at)
		}
	}
}

func (c *crowd) marketOf(key chain.Hash) chain.Address { return c.positions[number(key)].Market }

// path is a random walk of prices with gaps.
type path struct {
	random  *rand.Rand
	dollars []float64
	back    map[uint64]func()
}

func newPath(markets int) *path {
	return &path{random: rand.New(rand.NewPCG(5, 6)), dollars: slices.Repeat([]float64{1000}, markets),
		back: map[uint64]func(){}}
}

func (p *path) step(tick uint64) (token int) {
	token = p.random.IntN(len(p.dollars))
	if undo, due := p.back[tick]; due {
		undo()
	}
	before := p.dollars[token]
	p.dollars[token] *= 1 + 0.001*(p.random.Float64()-0.5)
	if p.random.IntN(150) == 0 {
		p.dollars[token] *= 1 + 0.16*(p.random.Float64()-0.5)
		if p.random.IntN(2) == 0 {
			p.back[tick+10+p.random.Uint64N(60)] = func() { p.dollars[token] = before }
		}
	}
	return token
}

func indexPolicy(c *crowd) *policy {
	x := NewIndex(ArmedRatio)
	for _, p := range c.positions {
		x.Put(p)
	}
	p := &policy{name: "index, tick by tick", found: map[chain.Hash]bool{}, closed: x.Remove}
	p.look = func(_ uint64, moved chain.Address, view *perp.View) (keys []chain.Hash) {
		candidates, err := x.Candidates(moved, view)
		if err != nil {
			panic(err)
		}
		for _, candidate := range candidates {
			if candidate.Verdict.Liquidatable {
				keys = append(keys, candidate.Position.PositionKey)
			}
		}
		return keys
	}
	return p
}

func scanPolicy(c *crowd, name string, every uint64) *policy {
	next := every / 3
	return &policy{name: name, found: map[chain.Hash]bool{},
		look: func(ms uint64, _ chain.Address, view *perp.View) (keys []chain.Hash) {
			if ms < next {
				return nil
			}
			next += every
			for i := range c.positions {
				if p := &c.positions[i]; p.Status != perp.Active {
					continue
				}
				if _, liquidatable, err := view.Liquidatable(c.positions[i]); err == nil && liquidatable {
					keys = append(keys, c.positions[i].PositionKey)
				}
			}
			return keys
		}}
}

// bandPolicy judges a position again at once when a move of 1 % would liquidate it, after 10 s where it takes 5 %, and
// after 6 h where it takes more.
func bandPolicy(c *crowd) *policy {
	next := make([]uint64, len(c.positions))
	return &policy{name: "bands by distance", found: map[chain.Hash]bool{},
		look: func(ms uint64, moved chain.Address, view *perp.View) (keys []chain.Hash) {
			for i := range c.positions {
				p := &c.positions[i]
				if p.Status != perp.Active || p.Market != moved || ms < next[i] {
					continue
				}
				verdict, err := view.Judge(*p)
				if err != nil {
					continue
				}
				left, _ := verdict.RemainingCollateralUsd.Big().Float64()
				room := left - verdict.MinCollateralUsdForLeverage.Float()
				switch move := room / p.SizeInUsd.Float(); {
				case move < 0.01:
					next[i] = ms
				case move < 0.05:
					next[i] = ms + 10_000
				default:
					next[i] = ms + 6*3600*1000
				}
				if verdict.Liquidatable {
					keys = append(keys, p.PositionKey)
				}
			}
			return keys
		}}
}

func table(policies []*policy, ticks int) string {
	var out strings.Builder
	out.WriteString("| policy | found | missed | delay p50 | p99 | max | CPU a tick |\n|---|---|---|---|---|---|---|\n")
	for _, p := range policies {
		slices.Sort(p.delays)
		at := func(share float64) string {
			if len(p.delays) == 0 {
				return "-"
			}
			return fmt.Sprintf("%.1f s", float64(p.delays[int(share*float64(len(p.delays)-1))])/1000)
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %s | %s | %s | %s |\n", p.name, len(p.delays), p.missed, at(0.5), at(0.99),
			at(1),
			(p.spent / time.Duration(ticks)).Round(100*time.Nanosecond))
	}
	return out.String()
}
