package simulator

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// The index price falls by one step with every report, so that a price that is reached stays reached, and from which
// report on is known beforehand.
const (
	startCents = 20_000_000 // $200 000 at the beginning of the play
	stepCents  = 100
)

// centsAt is the index price reported at a time of the play.
func centsAt(at time.Duration) uint64 { return uint64(startCents - int64(at/time.Second)*stepCents) }

// plannedJob is a job before its trader acts.
type plannedJob struct {
	number int
	kind   job.Kind
	// placed is when its trader acts, and due since when it can be executed, where a price decides that: the time of a
	// report. What is due at once is due in the block that takes the trader's transaction.
	placed, due time.Duration
	poison      venue.Poison
}

// leadTime is how long before it is due an order or a position that waits for a price comes into the world.
const leadTime = 30 * time.Second

// traffic draws the jobs of a play, by the time at which their traders act. They come at random (a Poisson process) at
// the scenario's rate.
func traffic(s Scenario, random *rand.Rand) (all []plannedJob) {
	shares := s.Jobs.shares()
	total := 0
	for _, share := range shares {
		total += share
	}
	mean := float64(time.Second) / s.Jobs.Rate()
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() * mean)
		if at >= time.Duration(s.Duration) {
			return all
		}
		w := plannedJob{number: len(all) + 1, kind: drawKind(shares, random.IntN(total)), placed: at}
		if w.kind == limitOrder || w.kind == job.Liquidation {
			w.due = max(at.Truncate(time.Second), time.Second) // zero is what is due at once
			w.placed = w.due - leadTime
		}
		if random.Float64()*100 < s.Jobs.Poison {
			w.poison = venue.Open + venue.Poison(random.IntN(2))
		}
		all = append(all, w)
	}
}

func drawKind(shares []int, lot int) job.Kind {
	for i, share := range shares {
		if lot < share {
			return kinds[i]
		}
		lot -= share
	}
	panic("sim: a lot beyond all shares")
}

// account is a trader of its own for each job, so that no job stands in the way of another.
func (w plannedJob) account() chain.Address {
	hash := chain.Keccak256(binary.BigEndian.AppendUint64([]byte("trader"), uint64(w.number)))
	return hash.Address()
}

// act is what the trader does, and the key of what comes of it.
func (w plannedJob) act(v *venue.Venue) (chain.Hash, venue.Act) {
	market := v.Markets()[0]
	switch w.kind {
	case job.Order:
		return v.Place(w.order(market, perp.MarketIncrease, venue.Price(startCents*2)))
	case limitOrder:
		return v.Place(w.order(market, perp.LimitIncrease, venue.Price(centsAt(w.due))))
	case job.Liquidation:
		return v.Open(w.position(market))
	default:
		return v.Ask(perp.Deposit, w.account(), market.MarketToken)
	}
}

// order is one that changes no position, so that a long play does not fill with them.
func (w plannedJob) order(m perp.Market, t perp.OrderType, limit perp.Price) perp.Order {
	return perp.Order{
		Account: w.account(), Market: m.MarketToken, InitialCollateralToken: m.ShortToken, OrderType: t, IsLong: true,
		TriggerPrice: limit.Max, AcceptablePrice: limit.Max,
	}
}

// position is a long of $10 000 that can be liquidated from the report on that is due, and not before: then its
// collateral and profit fall below the required hundredth of its size.
func (w plannedJob) position(m perp.Market) perp.Position {
	size := chain.U64(10_000).Mul(perp.One)
	tokens := size.Div(venue.Price(startCents).Min)
	// Half a step below the last price at which it is safe.
	edge := tokens.Mul(venue.Price(centsAt(w.due) + stepCents/2).Min)
	required := chain.U64(100).Mul(perp.One)
	return perp.Position{
		Account: w.account(), Market: m.MarketToken, CollateralToken: m.ShortToken, IsLong: true,
		SizeInUsd: size, SizeInTokens: tokens, CollateralAmount: required.Add(size).Sub(edge).Div(venue.Price(100).Min),
	}
}

// table is where what the trader made stands.
func (w plannedJob) table() perp.Table {
	switch w.kind {
	case job.Order, limitOrder:
		return perp.Orders
	case job.Liquidation:
		return perp.Positions
	default:
		return perp.Requests
	}
}

// name is how transcripts call the job.
func (w plannedJob) name() string {
	kind := string(w.kind)
	switch w.kind { //nolint:exhaustive // the others are named for people already
	case job.Order:
		kind = "market order"
	case limitOrder:
		kind = "limit order"
	}
	return fmt.Sprintf("%s %d", kind, w.number)
}
