package exchange

import "testing"

func TestSmoke(t *testing.T) {
	v := newVenue(t, nil)
	m := v.market("ETH/USD")
	trader := v.account()
	for _, e := range v.open(trader, m, true, 90_000, 2_000) {
		t.Log(e.name, e.items)
	}
}
