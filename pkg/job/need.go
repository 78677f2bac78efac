package job

import "perpkeeper/pkg/chain"

// Need is what is to be done on the chain: what a job and its execution have in common. Jobs of one need differ by the
// state they were found in. The side counts only where the key does not contain it: for a side of a market. Executing
// an order or request and cancelling it are one need: either ends it.
type Need struct {
	Kind   Kind
	Key    chain.Hash
	IsLong bool
}

// NeedOf is the need of a kind, a key and a side.
func NeedOf(kind Kind, key chain.Hash, isLong bool) Need {
	if of, is := kind.Cancels(); is {
		kind = of
	}
	return Need{kind, key, isLong && kind.Names() == MarketKey}
}

// Need is what the job is for.
func (j Job) Need() Need { return NeedOf(j.Kind, j.Key, j.IsLong) }
