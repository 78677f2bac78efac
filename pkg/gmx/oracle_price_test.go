package gmx

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func TestOracleReport(t *testing.T) {
	given := perp.Fields{"token": chain.Address{7}, "minPrice": chain.U64(5), "maxPrice": chain.U64(6),
		"timestamp": chain.U64(1_760_000_000)}
	token, price, second, is := OracleReport(event("OraclePriceUpdate", given))
	if !is || second != 1_760_000_000 || token != (chain.Address{7}) ||
		price != (perp.Price{Min: chain.U64(5), Max: chain.U64(6)}) {
		t.Errorf("%s, %+v, %d, %v", token, price, second, is)
	}
	damaged := event("OraclePriceUpdate", given)
	damaged.Data = damaged.Data[:len(damaged.Data)-32]
	for name, l := range map[string]chain.Log{"another event": event("PositionIncrease", nil), "a damaged one": damaged,
		"none": {}, "one of no time": event("OraclePriceUpdate", perp.Fields{"timestamp": chain.Pow10(30)})} {
		if _, _, _, is := OracleReport(l); is {
			t.Errorf("%s is taken for a price", name)
		}
	}
}
