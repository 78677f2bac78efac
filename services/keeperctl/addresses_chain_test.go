package keeperctl

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/operator/contract"
	"perpkeeper/pkg/secret"
	"perpkeeper/services/devnet/devnettest"
)

// From its DataStore, its router or any handler alone, every contract of a deployment is found, each under its own
// name.
func TestAddressesOfARunningExchange(t *testing.T) {
	d := devnettest.Start(t)
	c := d.Deployment().Contracts
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(d.RPC())}
	node, err := evm.Dial(t.Context(), d.Deployment().ChainID, cfg, zerolog.Nop(),
		evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	want := gmx.Config{
		EventEmitter: chain.Address(c.EventEmitter), DataStore: chain.Address(c.DataStore),
		Oracle:       chain.Address(c.Oracle),
		OrderHandler: chain.Address(c.OrderHandler), LiquidationHandler: chain.Address(c.LiquidationHandler),
		AdlHandler:     chain.Address(c.AdlHandler),
		DepositHandler: chain.Address(c.DepositHandler), WithdrawalHandler: chain.Address(c.WithdrawalHandler),
		ShiftHandler:         chain.Address(c.ShiftHandler),
		GlvDepositHandler:    chain.Address(c.GlvDepositHandler),
		GlvWithdrawalHandler: chain.Address(c.GlvWithdrawalHandler),
		GlvShiftHandler:      chain.Address(c.GlvShiftHandler),
	}
	for name, start := range map[string]chain.Address{
		"DataStore": want.DataStore, "ExchangeRouter": chain.Address(c.ExchangeRouter),
		"LiquidationHandler": want.LiquidationHandler,
	} {
		head, err := node.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, err := gmx.Discover(t.Context(), contract.Asker{Node: node, Block: head.Hash}, start)
		if err != nil || found.Config != want || len(found.Several) > 0 {
			t.Errorf("from the %s: found %+v, %v, several %v; want %+v", name, found.Config, err, found.Several, want)
		}
	}
}
