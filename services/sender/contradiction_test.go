package sender

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// Settings that are possible each by itself, and cannot work together, are refused in one line that says what to do.
func TestContradictionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Config)
		says string
	}{
		"as it comes": {func(*Config) {}, ""},
		"a round that outlives a job": {func(c *Config) { c.Tier.Window = 150 * time.Second },
			"window: 3 tiers of 2m30s"},
		"a window of a job's life": {func(c *Config) { c.Tier.Tiers, c.Tier.Window = 1, c.Tier.JobMaxAge },
			"window: 1 tiers of 5m0s"},
		"private for longer than a window": {func(c *Config) {
			c.Tier.Window, c.Sender.PrivateDeadline = 12*time.Second, 20*time.Second
		}, "sender.private_deadline: 20s"},
		"a head fresher than a block": {func(c *Config) { c.Sender.MaxLag = 100 * time.Millisecond }, "max_lag: 100ms"},
		"a reserve of the whole day": {func(c *Config) { c.Sender.Fee.Budget.Reserve = c.Sender.Fee.Budget.Day },
			"budget.liquidation_reserve: 8 BNB"},
		"a budget of a wei": {func(c *Config) {
			c.Sender.Fee.Budget.Cleanup = txm.MustBNB("0.000000000000000001")
		}, "budget.cleanup: 0.000000000000000001 BNB"},
		"liquidations cheaper than orders": {func(c *Config) {
			c.Sender.Fee.Liquidation.Cap = c.Sender.Fee.Order.Cap / 10
		}, "liquidation.max_price: 300000000 is below order.max_price"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Tier.Enabled, cfg.Signer.KeystoreDir = true, "/keys"
			cfg.Chain.PrivateURLs = []secret.URL{secret.MustURL("http://relay")}
			cfg.Sender.PrivateOnly = []string{"liquidation"}
			c.set(&cfg)
			err := errors.Join(cfg.Validate(), cfg.Tier.Validate(), cfg.Sender.Validate(), cfg.Sender.Fee.Validate())
			switch {
			case (err == nil) != (c.says == ""):
				t.Errorf("got %v, want %q", err, c.says)
			case err != nil && (!strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v, want one line that begins with %q", err, c.says)
			}
		})
	}
}
