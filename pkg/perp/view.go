package perp

import (
	"fmt"
	"sync"

	"perpkeeper/pkg/chain"
)

// View is the whole venue at one moment, to judge many positions by: the terms of a market are read when the first of
// its positions is judged and serve all others. It is safe for concurrent use. It stands for one set of
// [Circumstances]: state, prices or time that moved on need a new view.
type View struct {
	circumstances Circumstances
	mu            sync.RWMutex
	terms         map[chain.Address]marketTerms
}

type marketTerms struct {
	terms *Terms
	err   error
}

// NewView looks at the venue under circumstances whose rows must not change while it is in use.
func NewView(c Circumstances) *View {
	return &View{circumstances: c, terms: map[chain.Address]marketTerms{}}
}

// Terms returns a market's terms. It fails where a market or a price is missing or the contract's accrual would revert.
func (v *View) Terms(market chain.Address) (*Terms, error) {
	v.mu.RLock()
	known, read := v.terms[market]
	v.mu.RUnlock()
	if !read {
		known.terms, known.err = newTerms(market, v.circumstances)
		v.mu.Lock()
		v.terms[market] = known
		v.mu.Unlock()
	}
	return known.terms, known.err
}

// Judge applies the liquidation rule in the venue's own integers, as the contract does within a liquidation: after
// accruing borrowing and funding (PositionUtils.isPositionLiquidatable, called by
// DecreasePositionUtils.decreasePosition). It fails for a closed position, when a market or price is missing, or where
// the contract's arithmetic would revert ([ErrArithmetic]).
func (v *View) Judge(p Position) (Verdict, error) {
	t, err := v.Terms(p.Market)
	if err == nil {
		var verdict Verdict
		if verdict, err = t.judge(p, proDiscount(v.circumstances.Rows, p.Account)); err == nil {
			return verdict, nil
		}
	}
	return Verdict{}, fmt.Errorf("judging position %s: %w", p.PositionKey, err)
}

// Liquidatable reports whether a position is liquidatable, with the exact verdict if it is. It gives the same answer as
// [View.Judge] in a fraction of the time, because most positions are safe whatever impact, balance and discount do. One
// that is safe even so is not reported when the contract's arithmetic would revert over its impact.
func (v *View) Liquidatable(p Position) (Verdict, bool, error) {
	if t, err := v.Terms(p.Market); err == nil && t.safe(&p) {
		return Verdict{}, false, nil
	}
	verdict, err := v.Judge(p)
	return verdict, verdict.Liquidatable, err
}
