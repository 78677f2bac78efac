package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"perpkeeper/pkg/chain"
)

// The lane's share is what its contract says, none where there is no contract; an account with code pays nobody, itself
// neither.
func TestPaymentLane(t *testing.T) {
	word := func(n int) string { return fmt.Sprintf("0x%064x", n) }
	for name, c := range map[string]struct {
		says, code string
		share      uint64
		pays       bool
		wrong      string
	}{
		"before the fork":          {"0x", "0x", 0, false, ""},
		"after the fork":           {word(500), "0x", 500, true, ""},
		"governed":                 {word(1000), "0x", 1000, true, ""},
		"a signer with code":       {word(500), "0xef0100", 500, false, ""},
		"more than there is":       {word(10_000), "0x", 0, false, "not a part of 10000"},
		"something else than this": {"0x01", "0x", 0, false, "not a part of 10000"},
		"no answer":                {"away", "0x", 0, false, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(1, 50)
				nodes[0].inject(func(_ context.Context, method string, args []json.RawMessage) (any, *fault, bool) {
					switch {
					case method == methodCode:
						return c.code, nil, true
					case method != methodCall:
						return nil, nil, false
					case c.says == "away":
						return nil, refusal(-32000, "away"), true
					case !strings.Contains(string(args[0]), "0x0000000000000000000000000000000000002007"):
						t.Errorf("asked %s", args[0])
					}
					return c.says, nil, true
				})
				client, _ := dialFakes(t, nil, nodes...)
				share, err := client.PaymentLane(t.Context())
				pays, _ := client.Pays(t.Context(), chain.Address{1})
				if share != c.share || pays != c.pays || (err != nil) != (c.wrong != "") ||
					err != nil && !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("share %d, pays %t, %v", share, pays, err)
				}
			})
		})
	}
}

func TestCallGas(t *testing.T) {
	for _, c := range []struct{ limit, share, want uint64 }{
		{55_000_000, 500, 52_250_000}, {55_000_000, 0, 55_000_000}, {55_000_000, 1000, 49_500_000},
		{30_000_001, 500, 28_500_001}, {0, 500, 0}, {1<<64 - 1, 500, 17_524_406_870_024_074_035},
	} {
		if got := CallGas(c.limit, c.share); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.share, c.limit, got, c.want)
		}
	}
}
