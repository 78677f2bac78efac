package perp

import "perpkeeper/pkg/chain"

// apply starts a position afresh when it was closed: nothing of its former life counts but the number of
// changes.
func (e PositionIncreased) apply(s State) error {
	next := e.Position
	prev, _ := get[Position](s, next.RowKey())
	if want := prev.SizeInUsd.Add(e.SizeDeltaUsd); prev.Changes > 0 && next.SizeInUsd != want {
		return contradiction("position %s: %s USD increased by %s cannot be %s", next.PositionKey, prev.SizeInUsd,
			e.SizeDeltaUsd, next.SizeInUsd)
	}
	next.Status, next.Changes = Active, prev.Changes+1
	next.PendingImpactAmount, next.DecreasedAtTime = e.Impact, chain.Uint{}
	if prev.Status == Active {
		next.PendingImpactAmount = prev.PendingImpactAmount.Add(e.Impact)
		next.DecreasedAtTime = prev.DecreasedAtTime
	}
	s.Put(next)
	return nil
}

func (e PositionDecreased) apply(s State) error {
	next := e.Position
	prev, known := get[Position](s, next.RowKey())
	if known {
		if err := checkDecrease(prev, e); err != nil {
			return err
		}
	}
	next.Status, next.Changes, next.IncreasedAtTime = Active, prev.Changes+1, prev.IncreasedAtTime
	next.PendingImpactAmount = chain.Int{}
	switch {
	case next.SizeInUsd.IsZero():
		next.Status = Closed
	case known:
		next.PendingImpactAmount = prev.PendingImpactAmount.Sub(proportionalImpact(prev, e.SizeDeltaUsd))
	}
	s.Put(next)
	return nil
}

// checkDecrease demands that the sizes add up. The exchange may also close what a decrease left over (no index tokens
// remain), so a decrease to zero may remove more than its event names.
func checkDecrease(prev Position, e PositionDecreased) error {
	left := e.Position.SizeInUsd
	switch sum := left.Add(e.SizeDeltaUsd); {
	case prev.Status != Active:
		return contradiction("position %s is closed and cannot decrease", prev.PositionKey)
	case prev.SizeInUsd.Less(sum), !left.IsZero() && prev.SizeInUsd != sum:
		return contradiction("position %s: %s USD decreased by %s cannot leave %s", prev.PositionKey, prev.SizeInUsd,
			e.SizeDeltaUsd, left)
	}
	return nil
}

// proportionalImpact is the share of the pending impact that a decrease realizes. The exchange rounds against the
// trader: a negative share's magnitude up, a positive one's down
// (DecreasePositionCollateralUtils._getProportionalPendingImpactValues).
func proportionalImpact(p Position, sizeDeltaUsd chain.Uint) chain.Int {
	magnitude := p.PendingImpactAmount.Abs()
	if p.PendingImpactAmount.Sign() < 0 {
		return chain.IntOf(true, magnitude.MulDivUp(sizeDeltaUsd, p.SizeInUsd))
	}
	return magnitude.MulDiv(sizeDeltaUsd, p.SizeInUsd).Int()
}

func (e PositionTimeInitialized) apply(s State) error {
	p, known := get[Position](s, RowKey{Positions, e.Key})
	if !known {
		return nil
	}
	if e.IncreasedAtTime != nil {
		p.IncreasedAtTime = *e.IncreasedAtTime
	}
	if e.DecreasedAtTime != nil {
		p.DecreasedAtTime = *e.DecreasedAtTime
	}
	p.Stamp = e.Stamp
	s.Put(p)
	return nil
}
