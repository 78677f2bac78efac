package perp

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

func (e OrderCreated) apply(s State) error {
	o := e.Order
	if _, known := get[Order](s, o.RowKey()); known {
		return contradiction("order %s is created a second time", o.Key)
	}
	o.Status, o.Changes, o.Birth = Created, 1, o.Stamp
	s.Put(o)
	return nil
}

// apply keeps the execution fee: the event does not name it, although an update may top it up.
func (e OrderChanged) apply(s State) error {
	return withOrder(s, e.Key, e.Stamp, func(o *Order) error {
		o.SizeDeltaUsd, o.AcceptablePrice, o.TriggerPrice = e.SizeDeltaUsd, e.AcceptablePrice, e.TriggerPrice
		o.MinOutputAmount, o.UpdatedAtTime = e.MinOutputAmount, e.UpdatedAtTime
		o.ValidFromTime, o.AutoCancel, o.DataList = e.ValidFromTime, e.AutoCancel, e.DataList
		o.Status, o.Birth = Updated, e.Stamp
		o.Changes++
		return nil
	})
}

// apply follows what an execution cut an order down to; the order ends in the same transaction, so it is no
// change to act on.
func (e OrderResized) apply(s State) error {
	return withOrder(s, e.Key, e.Stamp, func(o *Order) error {
		if e.NextSizeDeltaUsd != nil {
			o.SizeDeltaUsd = *e.NextSizeDeltaUsd
		}
		if e.NextCollateralDelta != nil {
			o.InitialCollateralDeltaAmount = *e.NextCollateralDelta
		}
		return nil
	})
}

func (e OrderEnded) apply(s State) error {
	return withOrder(s, e.Key, e.Stamp, func(o *Order) error {
		switch e.Status {
		case Executed:
			o.SecondaryOrderType = e.SecondaryOrderType
		case Cancelled:
			o.Reason, o.ReasonBytes = e.Reason, e.ReasonBytes
		case Frozen:
			// The keeper who froze it was paid with the whole fee.
			o.Reason, o.ReasonBytes, o.ExecutionFee = e.Reason, e.ReasonBytes, chain.Uint{}
			o.Changes++
		default:
			return fmt.Errorf("order %s cannot end as %q", e.Key, e.Status)
		}
		o.Status = e.Status
		return nil
	})
}

func (e OrderTimeInitialized) apply(s State) error {
	return withOrder(s, e.Key, e.Stamp, func(o *Order) error {
		o.UpdatedAtTime = e.UpdatedAtTime
		return nil
	})
}

// withOrder changes a copy of a known, living order and stores it. An unknown order is older than the fold and stays
// unknown.
func withOrder(s State, key chain.Hash, stamp Stamp, change func(*Order) error) error {
	o, known := get[Order](s, RowKey{Orders, key})
	if !known {
		return nil
	}
	if o.Status.Final() {
		return contradiction("order %s is already %s", key, o.Status)
	}
	if err := change(&o); err != nil {
		return err
	}
	o.Stamp = stamp
	s.Put(o)
	return nil
}

func (e RequestCreated) apply(s State) error {
	r := e.Request
	if _, known := get[Request](s, r.RowKey()); known {
		return contradiction("%s %s is created a second time", r.Kind, r.Key)
	}
	r.Status, r.Birth = Created, r.Stamp
	s.Put(r)
	return nil
}

func (e RequestEnded) apply(s State) error {
	r, known := get[Request](s, RowKey{Requests, e.Key})
	switch {
	case !known:
		return nil
	case r.Kind != e.Kind, r.Status.Final():
		return contradiction("%s %s is %s and cannot become a %s that is %s", r.Kind, r.Key, r.Status, e.Kind, e.Status)
	case e.Status != Executed && e.Status != Cancelled:
		return fmt.Errorf("%s %s cannot end as %q", e.Kind, e.Key, e.Status)
	}
	r.Status, r.Reason, r.ReasonBytes, r.Stamp = e.Status, e.Reason, e.ReasonBytes, e.Stamp
	s.Put(r)
	return nil
}
