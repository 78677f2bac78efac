package gmx

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var oraclePriceUpdate = chain.Keccak256([]byte("OraclePriceUpdate"))

// oracleReport reads the log that names the report by which the exchange's oracle took a price (OraclePriceUpdate). The
// answer is false for any other log.
func (r *reader) oracleReport(l *chain.Log) (is bool) {
	topics, ok := emitterTopics(l)
	return ok && topics == 1 && l.Topics[1] == oraclePriceUpdate && r.load(l, eventKinds[oraclePriceUpdate]) == nil
}

// OraclePrice reads the price that the exchange's oracle took for a token in a transaction (OraclePriceUpdate). It is
// no state of the exchange: the next execution brings its own. The answer is false for any other log.
func OraclePrice(l chain.Log) (token chain.Address, price perp.Price, is bool) {
	var r reader
	if !r.oracleReport(&l) {
		return token, price, false
	}
	token, price = r.address("token"), perp.Price{Min: r.uint("minPrice"), Max: r.uint("maxPrice")}
	return token, price, r.err == nil
}

// OracleSecond reads how old the report was by which the exchange's oracle took a price in a transaction
// (OraclePriceUpdate): the time its signers gave it, in Unix seconds. The answer is false for any other log.
func OracleSecond(l chain.Log) (second uint64, is bool) {
	var r reader
	if !r.oracleReport(&l) {
		return 0, false
	}
	second, fits := r.uint("timestamp").Uint64()
	return second, fits && r.err == nil
}
