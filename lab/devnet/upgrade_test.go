package devnet

import (
	"bytes"
	"testing"
	"time"

	"perpkeeper/lab/devnet/contracts"
)

// A running devnet is upgraded by its commands while its traders trade; the record follows, and what may not be done is
// said.
func TestUpgradeByCommand(t *testing.T) {
	cfg := quiet()
	cfg.BlockTime, cfg.Contracts, cfg.Rate = 50*time.Millisecond, string(contracts.V22B), 20
	d := start(t, cfg)
	before := d.Deployment()
	command := func(want int, args ...string) {
		t.Helper()
		var out, complaint bytes.Buffer
		if code := Command(t.Context(), append(args, "--rpc", d.RPC()), &out, &complaint); code != want {
			t.Fatalf("%v answers %d: %s%s", args, code, &out, &complaint)
		}
	}
	command(1, "retire")
	command(1, "upgrade", "--contracts", "v9")
	command(0, "upgrade")
	command(1, "upgrade")
	after := d.Deployment()
	if before.Version != contracts.V22B || after.Version != contracts.V22C ||
		before.Contracts.OrderHandler == after.Contracts.OrderHandler ||
		before.Contracts.OrderBook != after.Contracts.OrderBook {
		t.Errorf("upgraded from %+v to %+v", before, after)
	}
	command(0, "retire")
	keeper := d.Record().Keepers[0].Address.Hex()
	command(0, "role", "--account", keeper, "--holds=false")
	command(0, "role", "--account", keeper)
	command(1, "role", "--account", keeper, "--role", "CONTROLLER")
}
