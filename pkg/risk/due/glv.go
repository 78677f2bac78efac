package due

import (
	"bytes"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Glvs lists the markets of each GLV: an execution for a GLV needs the prices of all of them, to value it.
type Glvs map[chain.Address][]chain.Address

// GlvsOf reads the lists from measures, of which the others do not matter. Each list is in the order of addresses.
func GlvsOf(values func(yield func(perp.MarketValue) bool)) Glvs {
	glvs := Glvs{}
	for v := range values {
		if v.Measure == perp.GlvMarket && v.Value.Sign() > 0 {
			glv := v.Scope.Address()
			glvs[glv] = append(glvs[glv], v.Token)
		}
	}
	for _, markets := range glvs {
		slices.SortFunc(markets, func(a, b chain.Address) int { return bytes.Compare(a[:], b[:]) })
	}
	return glvs
}
