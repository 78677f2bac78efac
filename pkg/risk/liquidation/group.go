package liquidation

import (
	"math"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// groupKey names the positions that one price orders: those of a market with one collateral token on one side.
type groupKey struct {
	market, collateral chain.Address
	isLong             bool
}

// group keeps the positions of one kind in the order of the index price at which each has to be judged. The order
// stands as long as its certificate does; when that ends, all judging prices are computed anew.
type group struct {
	key     groupKey
	number  uint32
	byPrice priceEntries // of all members; in no order while it does not stand
	certificate
	stands bool
	// members whose judging prices a sweep has shown to be wrong: they are judged at every look
	distrusted map[handle]bool
}

// certificate is what the judging prices of a group were computed for: within it, a position whose judging price has
// not been reached is safe by the venue's integers.
//
// It holds while the collateral's price has not fallen too far, borrowing and funding have not grown beyond what was
// allowed for, and the parameters are the same. Whatever is dear to compute (price impact, the cap on profits,
// discounts) is replaced by its worst case, so that open interest may move as it likes.
type certificate struct {
	tracksIndex bool // the collateral is the index token: its price is the one in the price index
	// of the collateral's price; a position that owes less than it has is only better off above
	low                      float64
	spread                   float64 // largest distance of the index price's two sides, as a share
	borrowing, funding       float64 // most they may have grown to
	requiredUsd, requiredPer float64 // USD, and per USD of size
	fee, impact              float64 // per USD of size
}

const (
	// Shares of its price by which a collateral may move before the judging prices are computed anew. A collateral that
	// is the index token moves along the price index.
	slack, slackOfIndex = 0.005, 0.1
	// growth is for how many seconds of borrowing and funding, at the present rates, the judging prices are computed
	// ahead.
	growth = 3600
	// spreadSlack is added to twice the present distance of the index price's sides.
	spreadSlack = 0.001
	// Guard of the filter against the rounding of floats: a cent and a billionth of the size. Measured over 4.2 million
	// positions at their thresholds, floats were off by far less.
	guardUsd, guardPer = 1e28, 1e-9
	one                = 1e30 // USD and factors have 30 decimals
	perSizeUnit        = 1e45 // funding amounts per size have 15 more
	rounding           = 3000 // units by which accruals may round funding up, over and over
)

// certify takes the certificate from a market's present terms. Armed is the margin ratio below which positions have to
// be judged, at least the one at which they are liquidated.
func certify(key groupKey, t *perp.Terms, armed float64) certificate {
	price := priceOf(t, key.collateral)
	c := certificate{tracksIndex: key.collateral == t.Market().IndexToken}
	c.set(t, armed)
	room := slack
	if c.tracksIndex {
		room = slackOfIndex
	}
	c.low = price.Min.Float() * (1 - room)
	c.spread = 2*spread(t) + spreadSlack
	factor, perSecond := t.Borrowing(key.isLong)
	c.borrowing = factor.Float() + growth*perSecond.Float()
	perSize, perSizeSecond := t.Funding(key.isLong, key.collateral)
	c.funding = perSize.Float() + growth*perSizeSecond.Float() + rounding
	return c
}

// set takes the parameters.
func (c *certificate) set(t *perp.Terms, armed float64) {
	usd, factor := t.MinCollateral()
	c.requiredUsd, c.requiredPer = usd.Float()*armed, factor.Float()/one*armed
	c.fee = max(t.FeeFactor(true).Float(), t.FeeFactor(false).Float()) / one
	c.impact = t.MaxImpactFactor().Float() / one
}

// holds reports whether a certificate still covers a market's present terms.
func (c *certificate) holds(key groupKey, t *perp.Terms, armed float64) bool {
	now := *c
	now.set(t, armed)
	price := priceOf(t, key.collateral)
	factor, _ := t.Borrowing(key.isLong)
	perSize, _ := t.Funding(key.isLong, key.collateral)
	return now == *c && spread(t) <= c.spread && c.low <= price.Min.Float() &&
		factor.Float() <= c.borrowing && perSize.Float() <= c.funding
}

// spread is the distance of the two sides of the index price, as a share of it.
func spread(t *perp.Terms) float64 {
	index := priceOf(t, t.Market().IndexToken)
	return 1 - index.Min.Float()/index.Max.Float()
}

func priceOf(t *perp.Terms, collateral chain.Address) perp.Price {
	price, _ := t.Price(collateral)
	return price
}

// judgingPrice returns the place of a position in the price index: the index price at which, in the worst case the
// certificate allows, what remains of it meets what is required. A long is due at that price and below, so it stands
// there as it is; a short is due at it and above and stands at its negative.
//
// What remains is at least a·Pc + min(±(T·Pi − S), 0) − k, where a is the collateral less the funding it owes, k the
// other costs and the requirement, and profits are taken for nothing, because a cap may cut them.
func (c *certificate) judgingPrice(e entry, isLong bool) float64 {
	owed := e.size * max(c.funding-e.funding, 0) / perSizeUnit
	k := c.requiredUsd + guardUsd + e.size*(c.requiredPer+guardPer+c.fee+c.impact+max(c.borrowing-e.borrowing, 0)/one)
	a := e.collateral - owed - 1
	if worst := a * c.low; a <= 0 || worst <= k {
		return math.Inf(1) // without any loss it would have to be judged
	}
	if e.tokens == 0 {
		return math.Inf(1) // there is no such position; the judge says so
	}
	gains := a * (1 - c.spread) // collateral that is valued at the lower side, while a short loses at the higher
	switch {
	case isLong && c.tracksIndex:
		return (e.size + k) / (e.tokens + a)
	case isLong:
		return (e.size + k - a*c.low) / e.tokens
	case c.tracksIndex && gains < e.tokens:
		return -(e.size - k) / (e.tokens - gains)
	case c.tracksIndex && e.size < k:
		return math.Inf(1) // a rise saves it and a fall does not hurt it; what it began with is too little by itself
	case c.tracksIndex:
		return math.Inf(-1) // the collateral gains more than the position loses
	default:
		return -(e.size - k + a*c.low) / e.tokens
	}
}

// at is the place in the price index of a market's present price: what stands there and above is due.
func (g *group) at(t *perp.Terms) float64 {
	index := priceOf(t, t.Market().IndexToken)
	if g.key.isLong {
		return index.Min.Float()
	}
	return -index.Max.Float()
}

// due returns the members that have to be judged at a market's present terms. The slice is the group's own, good until
// the next change.
func (g *group) due(s *slab, t *perp.Terms, armed float64) priceEntries {
	if !g.stands || !g.holds(g.key, t, armed) {
		g.rebuild(s, t, armed)
	}
	return g.byPrice.due(g.at(t))
}

func (g *group) rebuild(s *slab, t *perp.Terms, armed float64) {
	g.certificate, g.stands = certify(g.key, t, armed), true
	for i := range g.byPrice {
		g.byPrice[i].price = g.price(s, g.byPrice[i].member)
	}
	g.byPrice.sort()
}

// price is the place of a member in the price index.
func (g *group) price(s *slab, h handle) float32 {
	if g.distrusted[h] {
		return float32(math.Inf(1))
	}
	return upward(g.judgingPrice(entryOf(s.record(h)), g.key.isLong))
}

func (g *group) add(s *slab, h handle) {
	if g.stands {
		g.byPrice = g.byPrice.with(priceEntry{g.price(s, h), h})
	} else {
		g.byPrice = append(g.byPrice, priceEntry{member: h})
	}
}

// drop takes a member out. Its judging price is computed as it was when it was put: nothing it depends on has changed
// since.
func (g *group) drop(s *slab, h handle) {
	from := 0
	if g.stands {
		from = g.byPrice.search(g.price(s, h))
	}
	g.byPrice = g.byPrice.without(from, h)
	delete(g.distrusted, h)
}

// distrust has a member judged at every look, for as long as it stays as it is. It is looked for everywhere: where it
// stands is what has turned out to be wrong.
func (g *group) distrust(s *slab, h handle) {
	if g.distrusted == nil {
		g.distrusted = map[handle]bool{}
	}
	g.byPrice = g.byPrice.without(0, h)
	g.distrusted[h] = true
	g.add(s, h)
}
