package due

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// BenchmarkSwaps is a tick over 10 000 limit swaps of four paths, a hundredth of which it reaches: by the index, and by
// judging all of them.
func BenchmarkSwaps(b *testing.B) {
	m := swapMoment()
	var index Swaps
	var all []perp.Order
	paths := [][]chain.Address{{ethMarket.MarketToken}, {ethMarket.MarketToken, btcMarket.MarketToken}}
	for i := range uint64(10_000) {
		o := sellEther(0, func(o *perp.Order) {
			o.Key = chain.Hash{byte(i >> 8), byte(i)}
			o.SwapPath = paths[i%2]
			if i%4 > 1 {
				o.SwapPath, o.InitialCollateralToken, o.InitialCollateralDeltaAmount = paths[0], usdc,
					chain.U64(4_500_000_000)
			}
			out, err := swapOf(*o).Execute(m.Rows, m.prices())
			if err != nil {
				b.Fatal(err)
			}
			// 1 % in reach, the rest up to 10 % away
			o.MinOutputAmount = out.AmountOut.MulDiv(chain.U64(999_000+10*i), chain.U64(1_000_000))
		})
		index.Put(o)
		all = append(all, o)
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			index.Reached(m, func(o perp.Order) { m.Order(o, perp.Position{}) })
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for i := range all {
				m.Order(all[i], perp.Position{})
			}
		}
	})
}
