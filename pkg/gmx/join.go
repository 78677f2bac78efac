package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// joins is what the logs of one transaction contained so far, and what of it waits for other logs. The contracts say in
// several events what is one thing to us: a decrease is preceded by the fees of its order, and by its insolvency if
// there was one, which names no position.
type joins struct {
	events    []perp.Event
	fees      []positionFees
	settled   []int // indices of the PositionSettled in events
	insolvent []int // indices of the ClosedInsolvent in events
}

// positionFees is PositionFeesCollected of a decrease, in the collateral token's smallest unit. An insolvent close
// collects none: all are zero.
type positionFees struct {
	orderKey, positionKey                          chain.Hash
	funding, borrowing, position, liquidation, all chain.Uint
}

// decodePositionFees keeps the fees of a decrease for its settlement. Those of an increase are in the position already.
func decodePositionFees(r *reader) {
	f := positionFees{
		orderKey:    r.hash("orderKey"),
		positionKey: r.hash("positionKey"),
		funding:     r.uint("fundingFeeAmount"),
		borrowing:   r.uint("borrowingFeeAmount"),
		position:    r.uint("positionFeeAmount"),
		all:         r.uint("totalCostAmount"),
	}
	// The contracts give the items of a liquidation fee only where it is above zero.
	if r.has("liquidationFeeAmount") || r.has("liquidationFeeAmountForFeeReceiver") {
		f.liquidation = r.uint("liquidationFeeAmount")
	}
	if !r.bool("isIncrease") {
		r.fees = append(r.fees, f)
	}
}

// emitSettlement announces what a decrease came to, without its fees: [joins.join] adds them.
func emitSettlement(r *reader, d perp.PositionDecreased) {
	p := d.Position
	r.settled = append(r.settled, len(r.events))
	r.emit(perp.PositionSettled{Settlement: perp.Settlement{
		OrderKey:              d.OrderKey,
		PositionKey:           p.PositionKey,
		Account:               p.Account,
		Market:                p.Market,
		CollateralToken:       p.CollateralToken,
		IsLong:                p.IsLong,
		OrderType:             d.OrderType,
		SizeDeltaUsd:          d.SizeDeltaUsd,
		SizeInUsd:             p.SizeInUsd,
		CollateralAmount:      p.CollateralAmount,
		ExecutionPrice:        r.uint("executionPrice"),
		CollateralDeltaAmount: r.uint("collateralDeltaAmount"),
		PriceImpactUsd:        r.int("priceImpactUsd"),
		BasePnlUsd:            r.int("basePnlUsd"),
		Stamp:                 p.Stamp,
	}})
}

// join completes the events of a whole transaction.
func (j *joins) join() error {
	for _, i := range j.insolvent {
		if err := j.joinInsolvent(i); err != nil {
			return err
		}
	}
	for _, i := range j.settled {
		if err := j.joinFees(i); err != nil {
			return err
		}
	}
	return nil
}

func (j *joins) joinFees(i int) error {
	s := j.events[i].(perp.PositionSettled).Settlement //nolint:forcetypeassert // emitSettlement put it there
	for _, f := range j.fees {
		if f.orderKey != s.OrderKey {
			continue
		}
		if f.positionKey != s.PositionKey {
			return unjoined("PositionDecrease", s.Stamp, "the PositionFeesCollected of its order %s is of position %s",
				s.OrderKey, f.positionKey)
		}
		s.FundingFeeAmount, s.BorrowingFeeAmount, s.PositionFeeAmount = f.funding, f.borrowing, f.position
		s.LiquidationFeeAmount, s.TotalCostAmount = f.liquidation, f.all
		j.events[i] = perp.PositionSettled{Settlement: s}
		return nil
	}
	return unjoined("PositionDecrease", s.Stamp, "no PositionFeesCollected of its order %s is in the transaction",
		s.OrderKey)
}

// joinInsolvent finds the position that the same order decreases later.
func (j *joins) joinInsolvent(i int) error {
	debt := j.events[i].(perp.ClosedInsolvent).Debt //nolint:forcetypeassert // decodeInsolventClose put it there
	for _, e := range j.events[i:] {
		if d, ok := e.(perp.PositionDecreased); ok && d.OrderKey == debt.OrderKey {
			debt.PositionKey, debt.Account, debt.Market = d.Position.PositionKey, d.Position.Account, d.Position.Market
			j.events[i] = perp.ClosedInsolvent{Debt: debt}
			return nil
		}
	}
	return unjoined("InsolventClose", debt.Stamp, "no PositionDecrease of order %s follows it in the transaction",
		debt.OrderKey)
}

func unjoined(event string, s perp.Stamp, format string, args ...any) error {
	return &DecodeError{Event: event, Place: Place{Block: s.Block, Index: s.Log, TxHash: s.TxHash},
		Cause: fmt.Errorf(format, args...)}
}
