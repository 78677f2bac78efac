package devnet

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// Devnets that begin with one deployment have the exchange at the same addresses, with all that was set and paid in,
// and chains of their own.
func TestDevnetsOfOneOrigin(t *testing.T) {
	one, other := start(t, quiet()), start(t, quiet())
	market := one.Deployment().Markets[0]
	if market != other.Deployment().Markets[0] {
		t.Errorf("markets %+v and %+v", market, other.Deployment().Markets[0])
	}
	for _, d := range []*Devnet{one, other} {
		client := dial(t, d.RPC())
		code, err := client.CodeAt(t.Context(), market.Address, nil)
		if err != nil || len(code) == 0 {
			t.Errorf("the market token has %d bytes of code, %v", len(code), err)
		}
		if _, err := d.Reorg(d.Node().Head().Number.Uint64()-d.Deployment().Block, "drop"); err == nil {
			t.Error("a fork undoes the deployment")
		}
	}
	one.Stall(hangGuard)
	stands, goesOn := one.Node().Head(), other.Node().Head().Number.Uint64()
	eventually(t, "blocks by themselves", func() bool { return other.Node().Head().Number.Uint64() > goesOn+1 })
	if head := one.Node().Head(); head.Hash() != stands.Hash() {
		t.Errorf("a stalled chain has gone on from block %d to block %d", stands.Number, head.Number)
	}
	stricter := quiet()
	stricter.LiquidationRatio = "1.10"
	o, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Start(t.Context(), stricter, zerolog.Nop()); err == nil ||
		!strings.Contains(err.Error(), "was deployed") {
		t.Errorf("a venue with another threshold: %v", err)
	}
}
