package gmx

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func TestOraclePrice(t *testing.T) {
	given := perp.Fields{"token": chain.Address{7}, "minPrice": perp.U64(5), "maxPrice": perp.U64(6)}
	token, price, is := OraclePrice(event("OraclePriceUpdate", given))
	if !is || token != (chain.Address{7}) || price != (perp.Price{Min: perp.U64(5), Max: perp.U64(6)}) {
		t.Errorf("%s, %+v, %v", token, price, is)
	}
	damaged := event("OraclePriceUpdate", given)
	damaged.Data = damaged.Data[:len(damaged.Data)-32]
	for name, l := range map[string]chain.Log{"another event": event("PositionIncrease", nil), "a damaged one": damaged,
		"none": {}} {
		if _, _, is := OraclePrice(l); is {
			t.Errorf("%s is taken for a price", name)
		}
	}
}
