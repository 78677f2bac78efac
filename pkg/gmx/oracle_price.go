package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var oraclePriceUpdate = chain.Keccak256([]byte("OraclePriceUpdate"))

// OracleReport reads the log that names the report by which the exchange's oracle took a price for a token in a
// transaction (OraclePriceUpdate): the price, and the time its signers gave it, in Unix seconds. It is no state of the
// exchange: the next execution brings its own. The answer is false for any other log.
func OracleReport(l chain.Log) (token chain.Address, price perp.Price, second uint64, is bool) {
	var r reader
	topics, ok := emitterTopics(&l)
	if !ok || topics != 1 || l.Topics[1] != oraclePriceUpdate || r.load(&l, eventKinds[oraclePriceUpdate]) != nil {
		return token, price, 0, false
	}
	token, price = r.address("token"), perp.Price{Min: r.uint("minPrice"), Max: r.uint("maxPrice")}
	second, fits := r.uint("timestamp").Uint64()
	return token, price, second, fits && r.err == nil
}
