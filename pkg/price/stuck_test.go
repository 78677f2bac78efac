package price

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
)

// The exchange refuses a fixed price whose two sides differ, and no other.
func TestStuck(t *testing.T) {
	r := Report{Token: chain.Address{0x70}, Source: StaticSource, Min: chain.U64(40), Max: chain.U64(50)}
	if why := r.Stuck(); !strings.Contains(why, r.Token.Hex()) || !strings.Contains(why, "InvalidMinMaxForPrice") {
		t.Errorf("it says %q", why)
	}
	r = FromMessage(r.Message()) // so the price topic has it
	if r.Stuck() == "" {
		t.Error("a reader of the price topic does not know")
	}
	one, feed := r, r
	one.Max, feed.Source = one.Min, "a feed"
	if one.Stuck() != "" || feed.Stuck() != "" {
		t.Errorf("%q, %q", one.Stuck(), feed.Stuck())
	}
}
