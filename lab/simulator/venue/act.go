package venue

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Act is something a trader does. It is asked for its events whenever a block takes it, on every branch anew; none if
// it cannot be done any more.
type Act func(s perp.Rows, at perp.Stamp) []perp.Event

// nextKey is the key of the next order or request.
func (v *Venue) nextKey() chain.Hash {
	v.asked++
	return chain.Keccak256([]byte("request"), binary.BigEndian.AppendUint64(nil, v.asked))
}

// Place is the creation of an order. Its key and times are the exchange's; of the rest, market, account, type, side,
// sizes, prices and swap path count.
func (v *Venue) Place(o perp.Order) (key chain.Hash, act Act) {
	o.Key = v.nextKey()
	return o.Key, func(_ perp.Rows, at perp.Stamp) []perp.Event {
		o := o
		o.Receiver, o.DataList, o.UpdatedAtTime, o.Stamp = o.Account, []chain.Hash{}, chain.U64(at.Seconds()), at
		return []perp.Event{perp.OrderCreated{Order: o}}
	}
}

// Update is a change of a waiting order's prices by its owner. A frozen one thaws.
func (v *Venue) Update(key chain.Hash, trigger, acceptable chain.Uint) Act {
	return func(s perp.Rows, at perp.Stamp) []perp.Event {
		o, known := row[perp.Order](s, perp.Orders, key)
		if !known || o.Status.Final() || o.OrderType.IsMarket() {
			return nil
		}
		return []perp.Event{perp.OrderChanged{
			Key: key, SizeDeltaUsd: o.SizeDeltaUsd, AcceptablePrice: acceptable, TriggerPrice: trigger,
			MinOutputAmount: o.MinOutputAmount, ValidFromTime: o.ValidFromTime, AutoCancel: o.AutoCancel,
			DataList: o.DataList, UpdatedAtTime: chain.U64(at.Seconds()), Stamp: at,
		}}
	}
}

// Cancel takes an order or request back, as its owner may: waiting orders at any time, all others once they have
// expired.
func (v *Venue) Cancel(key chain.Hash) Act {
	const reason = "USER_INITIATED_CANCEL"
	expired := func(updated chain.Uint, at perp.Stamp) bool {
		return updated.Add(chain.U64(expirationSeconds)).Less(chain.U64(at.Seconds()))
	}
	return func(s perp.Rows, at perp.Stamp) []perp.Event {
		if o, known := row[perp.Order](s, perp.Orders, key); known && !o.Status.Final() &&
			(!o.OrderType.IsMarket() || expired(o.UpdatedAtTime, at)) {
			return []perp.Event{perp.OrderEnded{Key: key, Status: perp.Cancelled, Reason: reason, Stamp: at}}
		}
		if r, known := row[perp.Request](s, perp.Requests, key); known && !r.Status.Final() &&
			expired(r.UpdatedAtTime, at) {
			return []perp.Event{perp.RequestEnded{Kind: r.Kind, Key: key, Status: perp.Cancelled, Reason: reason,
				Stamp: at}}
		}
		return nil
	}
}

// Ask is the creation of a deposit, withdrawal or shift.
func (v *Venue) Ask(kind perp.RequestKind, account, market chain.Address) (key chain.Hash, act Act) {
	key = v.nextKey()
	return key, func(_ perp.Rows, at perp.Stamp) []perp.Event {
		r := perp.Request{Kind: kind, Key: key, Account: account, Market: market,
			UpdatedAtTime: chain.U64(at.Seconds()),
			Stamp:         at}
		r.Fields = perp.Fields{"key": key, "account": account, "market": market}
		return []perp.Event{perp.RequestCreated{Request: r}}
	}
}

// Open opens a position at once, or adds to it: sizes and collateral of p come on top of what is there.
func (v *Venue) Open(p perp.Position) (key chain.Hash, act Act) {
	p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p.PositionKey, func(s perp.Rows, at perp.Stamp) []perp.Event {
		return []perp.Event{grown(s, p, chain.Hash{}, at)}
	}
}

// grown is the increase of a position by sizes and collateral.
func grown(s perp.Rows, by perp.Position, order chain.Hash, at perp.Stamp) perp.PositionIncreased {
	next := by
	if was, known := row[perp.Position](s, perp.Positions, by.PositionKey); known && was.Status == perp.Active {
		next.SizeInUsd, next.SizeInTokens = was.SizeInUsd.Add(by.SizeInUsd), was.SizeInTokens.Add(by.SizeInTokens)
		next.CollateralAmount = was.CollateralAmount.Add(by.CollateralAmount)
	}
	next.IncreasedAtTime, next.Stamp = chain.U64(at.Seconds()), at
	return perp.PositionIncreased{Position: next, OrderKey: order, SizeDeltaUsd: by.SizeInUsd}
}

// row looks a row up, as its own type.
func row[R perp.Row](s perp.Rows, table perp.Table, key chain.Hash) (r R, known bool) {
	r, known = s.Get(perp.RowKey{Table: table, Key: key}).(R)
	return r, known
}
