package planner

import (
	"context"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// uiFee is the row of a UI fee.
func uiFee(key chain.Hash) perp.RowKey { return perp.RowKey{Table: perp.Parameters, Key: key} }

// named are the keys of the UI fees that orders name, beside those that are held: their accounts may have set them long
// ago.
func named(orders []perp.Order, held map[chain.Hash]bool) (keys []chain.Hash) {
	for _, o := range orders {
		if key := perp.UIFeeKey(o.UIFeeReceiver); !o.UIFeeReceiver.IsZero() && !held[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// named are the keys of the UI fees that the orders of a book name.
func (b *book) named() (keys []chain.Hash) {
	for _, s := range b.shards {
		keys = slices.AppendSeq(keys, maps.Keys(s.uiFees))
	}
	return keys
}

// lookUp asks the database for parameters.
func (p *Planner) lookUp(ctx context.Context, keys []chain.Hash) ([]perp.Parameter, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return p.store.Parameters(ctx, keys)
}

// learn takes in the UI fees that were asked for, of which some have never been set, and lets go of those that no order
// names any more.
func (b *book) learn(asked []chain.Hash, found []perp.Parameter) {
	for _, key := range asked {
		b.uiFees[key] = true
	}
	for _, p := range found {
		b.put(p)
	}
	maps.DeleteFunc(b.uiFees, func(key chain.Hash, _ bool) bool {
		for _, s := range b.shards {
			if s.uiFees[key] > 0 {
				return false
			}
		}
		delete(b.rows, uiFee(key))
		return true
	})
}
