package sender

import (
	"context"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"

	"github.com/rs/zerolog"
)

func TestDefaultsNeedOnlyTheSite(t *testing.T) {
	cfg := DefaultConfig()
	for name, err := range map[string]error{"sender": cfg.Sender.Validate(), "fee": cfg.Sender.Fee.Validate()} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettingsNameEveryProblem(t *testing.T) {
	var s Settings
	err := s.Validate()
	if err == nil {
		t.Fatal("the zero settings were accepted")
	}
	for _, key := range []string{"lease_ttl", "max_lag", "max_in_flight"} {
		if !strings.Contains(err.Error(), key+": ") {
			t.Errorf("nothing is said of %s", key)
		}
	}
}

// What holds a row of a lease must end well before the lease does.
func TestDatabaseTimesSuitTheLease(t *testing.T) {
	cfg := DefaultConfig()
	db := cfg.database()
	for name, d := range map[string]time.Duration{
		"connect": db.ConnectTimeout, "statement": db.StatementTimeout,
		"idle in transaction": db.IdleInTransactionTimeout,
	} {
		if d >= cfg.Sender.LeaseTTL/3 {
			t.Errorf("%s may take %s of a lease of %s", name, d, cfg.Sender.LeaseTTL)
		}
	}
	cfg.Postgres.StatementTimeout = time.Millisecond
	if cfg.database().StatementTimeout != time.Millisecond {
		t.Error("a shorter time is kept")
	}
}

// TIER-19: a monitor is configured without keys; a sender is not.
func TestOnlyAMonitorIsWithoutKeys(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "signer.keystore_dir: no key") {
		t.Errorf("a sender without keys: %v", err)
	}
	cfg.Tier.Monitor = true
	if err := cfg.Validate(); err != nil {
		t.Errorf("a monitor without keys: %v", err)
	}
	cfg.Signer.KeystoreDir = "/keys"
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), "signer: there are keys") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("a monitor with keys: %v", err)
	}
}

// What is to go to private endpoints alone needs some, and lanes that there are.
func TestPrivateSettings(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Sender.PrivateOnly = []string{"liquidation"}
	if err := cfg.Validate(); !strings.Contains(err.Error(), "sender.private_only: there is no private endpoint") {
		t.Errorf("without an endpoint: %v", err)
	}
	cfg.Chain.PrivateURLs = cfg.Chain.URLs
	if err := cfg.Validate(); strings.Contains(err.Error(), "private") || cfg.Sender.Validate() != nil {
		t.Errorf("with one: %v, %v", err, cfg.Sender.Validate())
	}
	cfg.Sender.PrivateOnly, cfg.Sender.PrivateDeadline = []string{"liquidations"}, time.Hour
	err := cfg.Sender.Validate()
	if err == nil || !strings.Contains(err.Error(), `private_only: "liquidations" is no lane`) ||
		!strings.Contains(err.Error(), "private_deadline: 1h0m0s is not between") {
		t.Errorf("another lane and a long time: %v", err)
	}
}

// TIER-19: the sender of a keeper that never sends asks nobody for anything: it has no key, no database, no broker.
func TestSenderOfAMonitorRests(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Tier.Enabled, cfg.Tier.Monitor = true, true
	ctx, cancel := context.WithCancel(t.Context())
	start := func(sh *service.Shell) error {
		defer cancel()
		return Start(sh, cfg)
	}
	if err := service.Run(ctx, service.Options{Name: "sender", Log: zerolog.Nop()}, start); err != nil {
		t.Errorf("the sender of a monitor: %v", err)
	}
	cfg.Tier.Monitor = false
	if err := service.Run(t.Context(), service.Options{Name: "sender", Log: zerolog.Nop()}, start); err == nil {
		t.Error("a sender without a key starts")
	}
}

// A shadow has no key to sign with, whatever the configuration names, and no turn to wait for.
func TestShadowHasNoKeys(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Signer.Dev = true
	cfg.Signer.DevKeys = []secret.String{secret.New(strings.Repeat("01", 32))}
	cfg.Tier.Enabled, cfg.Tier.Priority, cfg.Tier.Tiers = true, 2, 3
	if keys, err := openKeys(cfg.asShadow()); err != nil || len(keys) != 1 || !cfg.asShadow().Tier.Enabled {
		t.Fatalf("a sender that is none has %d keys, %v", len(keys), err)
	}
	cfg.Sender.Mode = Shadow
	if err := cfg.Sender.Validate(); err != nil {
		t.Error(err)
	}
	if keys, err := openKeys(cfg.asShadow()); err != nil || len(keys) > 0 || cfg.asShadow().Tier.Enabled {
		t.Errorf("%d keys, %v, tiers %v", len(keys), err, cfg.asShadow().Tier.Enabled)
	}
}
