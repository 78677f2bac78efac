package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// SimulatedPrices are the prices an execution is rehearsed with (OracleUtils.SimulatePricesParams), one for each token,
// and the earliest and latest second of the reports they stand for.
type SimulatedPrices struct {
	Tokens   []chain.Address
	Prices   []perp.Price
	From, To uint64
}

var selectSimulateOrder = selector("simulateExecuteOrder(bytes32,(address[],(uint256,uint256)[],uint256,uint256))")

// SimulateExecuteOrder encodes OrderHandler.simulateExecuteOrder, which anyone may call for nothing. It executes an
// order and always reverts: with EndOfOracleSimulation where the order is executed, else with what the venue would
// cancel or freeze it for. A simulated executeOrder does not tell: where it cancels or freezes, it succeeds.
func SimulateExecuteOrder(key chain.Hash, p SimulatedPrices) []byte {
	tokens := encodeAddresses(p.Tokens)
	out := append(selectSimulateOrder[:], key[:]...)
	out = appendNumber(out, 2*32)
	out = appendNumber(out, 4*32)
	out = appendNumber(out, 4*32+len(tokens))
	for _, second := range []uint64{p.From, p.To} {
		word := wordOf(second)
		out = append(out, word[:]...)
	}
	out = append(out, tokens...)
	out = appendNumber(out, len(p.Prices))
	for _, price := range p.Prices {
		low, high := price.Min.Bytes32(), price.Max.Bytes32()
		out = append(append(out, low[:]...), high[:]...)
	}
	return out
}
