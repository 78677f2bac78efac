package due

import (
	"math"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/priceindex"
)

// Swaps keeps limit swaps in the order of the price at which their output may reach what they ask for, so that a tick
// looks only at those it reaches. The price is that of the token that is paid in, in tokens that come out. It is for
// one goroutine at a time. The zero Swaps is empty.
type Swaps struct {
	orders map[chain.Hash]*waitingSwap
	groups map[string]*swapGroup
}

// swapGroup is the swaps along one path: one price orders them. Their judging prices stand as long as the certificate
// does.
type swapGroup struct {
	tokenIn chain.Address
	path    []chain.Address
	members map[*waitingSwap]struct{}
	byPrice priceindex.Index[*waitingSwap]
	certificate
	stands bool
}

type waitingSwap struct {
	order     perp.Order
	group     *swapGroup
	groupKey  string
	distrusts bool // a sweep found that its judging price was wrong: it is looked at each time
	slot      priceindex.Slot
}

// Slot implements [priceindex.Member].
func (w *waitingSwap) Slot() *priceindex.Slot { return &w.slot }

// Put adds a limit swap, or replaces it.
func (x *Swaps) Put(o perp.Order) {
	x.Remove(o.Key)
	if x.orders == nil {
		x.orders, x.groups = map[chain.Hash]*waitingSwap{}, map[string]*swapGroup{}
	}
	names := slices.Clone(o.InitialCollateralToken[:])
	for _, market := range o.SwapPath {
		names = append(names, market[:]...)
	}
	key := string(names)
	g, known := x.groups[key]
	if !known {
		g = &swapGroup{tokenIn: o.InitialCollateralToken, path: o.SwapPath, members: map[*waitingSwap]struct{}{}}
		x.groups[key] = g
	}
	w := &waitingSwap{order: o, group: g, groupKey: key}
	x.orders[o.Key], g.members[w] = w, struct{}{}
	if g.stands {
		g.byPrice.Put(w, g.judgingPrice(w))
	}
}

// Remove takes a limit swap out, if it is there.
func (x *Swaps) Remove(key chain.Hash) {
	w, known := x.orders[key]
	if !known {
		return
	}
	w.group.byPrice.Remove(w)
	delete(w.group.members, w)
	if len(w.group.members) == 0 {
		delete(x.groups, w.groupKey)
	}
	delete(x.orders, key)
}

// Follows reports whether any of the swaps may depend on the price of one of these tokens.
func (x *Swaps) Follows(rows perp.Rows, tokens map[chain.Address]bool) bool {
	for _, g := range x.groups {
		for _, address := range g.path {
			m, _ := rows.Get(perp.RowKey{Table: perp.Markets, Key: address.Hash()}).(perp.Market)
			if slices.ContainsFunc(m.Tokens(), func(t chain.Address) bool { return tokens[t] }) {
				return true
			}
		}
	}
	return false
}

// Reached calls yield for every swap whose output may be what it asks for at a moment; [Moment.Order] knows exactly.
func (x *Swaps) Reached(m *Moment, yield func(perp.Order)) {
	for _, g := range x.groups {
		g.due(m, yield)
	}
}

// Missed calls yield for every swap that is due at a moment and that [Swaps.Reached] does not name: there must be none.
// From then on each of them is named always.
func (x *Swaps) Missed(m *Moment, yield func(perp.Order)) {
	reached := map[chain.Hash]bool{}
	x.Reached(m, func(o perp.Order) { reached[o.Key] = true })
	for key, w := range x.orders {
		if reached[key] || !m.Order(w.order, perp.Position{}).Due {
			continue
		}
		w.distrusts = true
		if w.group.stands {
			w.group.byPrice.Put(w, w.group.judgingPrice(w))
		}
		yield(w.order)
	}
}

// due yields the swaps whose judging prices a moment's price has reached. Without the price of a token on the path none
// is due; of a path that leads nowhere all are yielded, for whoever judges them to say so.
func (g *swapGroup) due(m *Moment, yield func(perp.Order)) {
	now, priced, leads := g.look(m)
	switch {
	case !leads:
		for w := range g.members {
			yield(w.order)
		}
		return
	case !priced:
		return
	case !g.stands || !g.holds(now):
		g.rebuild(now)
	}
	for _, r := range g.byPrice.Due(-now.inLow / now.outHigh * (1 + slack)) {
		yield(r.Member.order)
	}
}

func (g *swapGroup) rebuild(now certificate) {
	g.certificate, g.stands = certify(now), true
	members := make([]*waitingSwap, 0, len(g.members))
	for w := range g.members {
		w.slot.Price = g.judgingPrice(w)
		members = append(members, w)
	}
	g.byPrice.Fill(members)
}

// look takes in what bounds the swaps of a path at a moment, as floats: they only filter.
func (g *swapGroup) look(m *Moment) (now certificate, priced, leads bool) {
	token := g.tokenIn
	in, priced := m.Quotes[token]
	now.inLow, now.inHigh = in.Min.Float(), in.Max.Float()
	for _, market := range g.path {
		t, known := perp.SwapTermsOf(m.Rows, market, token)
		if !known {
			return now, false, false
		}
		out, reported := m.Quotes[t.TokenOut]
		if priced = priced && reported; priced {
			now.hops = append(now.hops, boundOf(t, in, out))
			now.spread = max(now.spread, in.Max.Float()/in.Min.Float(), out.Max.Float()/out.Min.Float())
		}
		token, in = t.TokenOut, out
	}
	now.outLow, now.outHigh = in.Max.Float(), in.Max.Float()
	return now, priced, len(g.path) > 0
}

func boundOf(t perp.SwapTerms, in, out Quote) hopBound {
	middle := func(q Quote) float64 { return (q.Min.Float() + q.Max.Float()) / 2 }
	worthIn, worthOut := t.PoolIn.Float()*middle(in)/one, t.PoolOut.Float()*middle(out)/one
	return hopBound{
		fee: t.LeastFee.Float() / one, reward: t.Reward.Float() / one, exponent: t.Exponent.Float() / one,
		imbalance: worthOut - worthIn, depth: worthOut + worthIn, unit: in.Max.Float() / one,
	}
}

// certificate is what the judging prices of a group were computed for: within it, a swap whose judging price has not
// been reached gives less than it asks for. Whatever takes from the output (charges for impact, fees of interfaces,
// limits of pools) is left out, and what adds to it, the reward for balancing pools, is bounded.
type certificate struct {
	inLow, inHigh   float64 // prices of a unit of the token in: the lower side now; the higher one at most
	outLow, outHigh float64 // higher side of the price of a unit of the token out: at least; now
	spread          float64 // of any price on the path, higher over lower side, at most
	hops            []hopBound
}

// hopBound bounds one hop. Money is in USD.
type hopBound struct {
	fee              float64 // at least
	reward, exponent float64
	// what the token out is worth more than the token in, at most: a swap that makes it smaller is rewarded
	imbalance float64
	depth     float64 // both tokens together
	// what a unit of the token in is worth, at most: the fee is rounded down by less than one
	unit float64
}

const (
	one = 1e30 // USD and factors have 30 decimals
	// room is by how much prices, and the imbalance of a pool as a share of the pool, may move before judging prices
	// are computed anew.
	room, roomOfPool = 0.05, 0.01
	// guards cover the errors of floats and of the chain's own powers, many times over: a share of a reward, of a
	// power, and USD.
	guard, guardPower, guardUsd = 1e-6, 1e-12, 1e-6
)

// certify makes room for the moments to come.
func certify(now certificate) certificate {
	now.inHigh *= 1 + room
	now.outLow *= 1 - room
	now.spread = 1 + 2*(now.spread-1) + 0.001
	now.hops = slices.Clone(now.hops)
	for i := range now.hops {
		now.hops[i].imbalance = max(now.hops[i].imbalance, 0) + roomOfPool*now.hops[i].depth
		now.hops[i].unit *= 1 + room
	}
	return now
}

// holds reports whether the certificate covers what is seen now.
func (c *certificate) holds(now certificate) bool {
	if len(c.hops) != len(now.hops) || c.inHigh < now.inHigh || now.outHigh < c.outLow || c.spread < now.spread {
		return false
	}
	for i, h := range now.hops {
		was := c.hops[i]
		if h.fee != was.fee || h.reward != was.reward || h.exponent != was.exponent || was.imbalance < h.imbalance ||
			was.unit < h.unit {
			return false
		}
	}
	return true
}

// judgingPrice is the place of a swap in the price index: the price, negative because it is reached by rising, at which
// in the best case that the certificate allows the output is what is asked for.
//
// One hop turns an amount in, worth V at the lower side of its price, into an amount out that is worth at most V less
// the fee plus the reward and a unit, at the higher side of its price; and what comes out of one hop is valued at the
// lower side for the next.
func (c *certificate) judgingPrice(w *waitingSwap) float64 {
	amount := w.order.InitialCollateralDeltaAmount.Float()
	if w.distrusts || amount == 0 {
		return math.Inf(1)
	}
	kept, worth, rewards := 1.0, amount*c.inHigh/one, 0.0
	for _, h := range c.hops {
		kept *= 1 - h.fee
		reward := h.most(worth*c.spread) + h.unit
		rewards += reward
		worth += reward
	}
	if kept <= 0 {
		return math.Inf(1)
	}
	return -(w.order.MinOutputAmount.Float() - rewards*one/c.outLow) / (amount * kept)
}

// most is the largest reward for a swap of at most so much: it moves twice its value from one side of the imbalance to
// the other, and what goes beyond it is not rewarded.
func (h hopBound) most(usd float64) float64 {
	before, after := h.imbalance, max(h.imbalance-2*usd, 0)
	reward := math.Pow(before, h.exponent) - math.Pow(after, h.exponent)
	if h.exponent < 1 {
		reward = math.Pow(min(before, 2*usd), h.exponent)
	}
	return h.reward*(reward*(1+guard)+math.Pow(before, h.exponent)*guardPower) + guardUsd
}
