package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var oraclePriceUpdate = chain.Keccak256([]byte("OraclePriceUpdate"))

// OraclePrice reads the price that the exchange's oracle took for a token in a transaction (OraclePriceUpdate). It is
// no state of the exchange: the next execution brings its own. The answer is false for any other log.
func OraclePrice(l chain.Log) (token chain.Address, price perp.Price, is bool) {
	kind, known := eventKinds[oraclePriceUpdate]
	if topics, ok := emitterTopics(&l); !ok || topics != 1 || l.Topics[1] != oraclePriceUpdate || !known {
		return token, price, false
	}
	var r reader
	if r.load(&l, kind) != nil {
		return token, price, false
	}
	token, price = r.address("token"), perp.Price{Min: r.uint("minPrice"), Max: r.uint("maxPrice")}
	return token, price, r.err == nil
}
