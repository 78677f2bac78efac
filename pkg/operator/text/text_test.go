package text_test

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
)

func TestAmounts(t *testing.T) {
	for wei, want := range map[uint64]string{0: "0", 1: "0.000000000000000001", 1e18: "1", 12e17: "1.2"} {
		if got := text.Coins(chain.U64(wei)); got != want {
			t.Errorf("%d wei: %s, want %s", wei, got, want)
		}
	}
	for usd, want := range map[chain.Uint]string{
		{}:                                   "$0.00",
		chain.Pow10(28):                      "$0.01",
		chain.Pow10(30).Mul(chain.U64(12)):   "$12.00",
		chain.Pow10(27).Mul(chain.U64(1999)): "$1.99",
		chain.U64(279_294).Mul(perp.One):     "$279,294.00",
	} {
		if got := text.USD(usd); got != want {
			t.Errorf("%s: %s, want %s", usd, got, want)
		}
	}
	if got := text.Percent(perp.One.Div(chain.U64(80))); got != "1.25 %" {
		t.Error(got)
	}
	for want, v := range map[string]struct {
		price    chain.Uint
		decimals int
	}{
		"$64,250.5":    {chain.U64(642_505).Mul(chain.Pow10(21)), 8}, // 64250.5 USD a coin of 10^8
		"$1":           {perp.One.Div(chain.Pow10(6)), 6},
		"$0.000123456": {chain.U64(1234567).Mul(chain.Pow10(20)), 0},
		"$0":           {chain.Uint{}, 18},
		"$700":         {chain.U64(7), 32},
	} {
		if got := text.Price(v.price, v.decimals); got != want {
			t.Errorf("%s with %d decimals: %s, want %s", v.price, v.decimals, got, want)
		}
	}
	for want, wei := range map[string]uint64{"0 BNB": 0, "< 0.000001 BNB": 999_999_999_999, "0.000001 BNB": 1e12,
		"1.25 BNB": 125e16, "18.446744 BNB": 1<<64 - 1} {
		if got := text.BNB(chain.U64(wei)); got != want {
			t.Errorf("%d wei: %s, want %s", wei, got, want)
		}
	}
	for want, digits := range map[string]string{"0": "0", "999": "999", "1,000": "1000",
		"12,345,678.0009": "12345678.0009"} {
		if got := text.Grouped(digits); got != want {
			t.Errorf("%s: %s, want %s", digits, got, want)
		}
	}
	if loss := chain.U64(1).Int().Sub(chain.U64(2e15).Int()); text.SignedBNB(loss) != "−0.001999 BNB" {
		t.Error(text.SignedBNB(loss))
	}
	if got := text.Because("first\nsecond"); got != ": first" {
		t.Error(got)
	}
}

// No digit is lost: what is written as coins is the number of wei again.
func TestCoinsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wei := rapid.Uint64().Draw(t, "wei")
		var whole, fraction, unit uint64 = 0, 0, 1e18
		after := false
		for _, r := range text.Coins(chain.U64(wei)) {
			switch {
			case r == '.':
				after = true
			case after:
				unit /= 10
				fraction += uint64(r-'0') * unit
			default:
				whole = whole*10 + uint64(r-'0')
			}
		}
		if whole*1e18+fraction != wei {
			t.Fatalf("%d wei are written as %s", wei, text.Coins(chain.U64(wei)))
		}
	})
}
