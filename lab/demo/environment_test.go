package demo

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// devnetOf has so many keeper accounts.
func devnetOf(keepers byte) (d Devnet) {
	for i := range keepers {
		d.Accounts = append(d.Accounts, Account{Purpose: "keeper", Address: chain.Address{19: i + 1},
			Key: fmt.Sprint("key ", i+1)})
	}
	return d
}

func stackOf(keepers, signers int, accounts byte) *Stack {
	settings := DefaultConfig().Demo
	settings.Keepers, settings.Signers = keepers, signers
	s := New(settings, zerolog.Nop())
	s.Devnet = devnetOf(accounts)
	return s
}

// TIER-15: each keeper has signers of its own, knows the others' by their tier, and records what all of them send.
func TestKeepersKnowEachOther(t *testing.T) {
	s := stackOf(3, 2, 6)
	const address = "0x000000000000000000000000000000000000000"
	for _, k := range s.Keepers {
		tiers, err := k.tiers()
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("[tier]\nenabled = true\npriority = %d\ntiers = 3\nwindow = %q\n",
			k.Tier, s.settings.Window); !strings.Contains(tiers, want) {
			t.Errorf("%s: %q is not in\n%s", k.Role(), want, tiers)
		}
		env, err := k.environment()
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.Join(env, "\n") + "\n"
		for tier := 1; tier <= 3; tier++ {
			first, second := fmt.Sprint(address, 2*tier-1), fmt.Sprint(address, 2*tier)
			peer := fmt.Sprintf("tier = %d\nsigners = [\"%s\", \"%s\"]\n", tier, first, second)
			if own := tier == k.Tier; strings.Contains(tiers, peer) == own {
				t.Errorf("%s: tier %d among the peers: %v", k.Role(), tier, !own)
			}
			if strings.Contains(joined, "KEEPER_SIGNERS="+first+","+second+"\n") != (tier == k.Tier) ||
				strings.Contains(joined, fmt.Sprintf("SIGNER_DEV_KEYS=key %d,key %d\n", 2*tier-1,
					2*tier)) != (tier == k.Tier) {
				t.Errorf("%s: the signers of tier %d are not told from its own", k.Role(), tier)
			}
		}
	}
}

func TestKeeperAloneHasNoTier(t *testing.T) {
	if tiers, err := stackOf(1, 2, 2).Keepers[0].tiers(); err != nil || tiers != "" {
		t.Errorf("%q, %v", tiers, err)
	}
}

// The file for keeperctl means to a shell what the keeper was told, and is nobody else's to read.
func TestEnvironmentIsPutDownForAShell(t *testing.T) {
	k := stackOf(1, 2, 2).Keepers[0]
	k.dir = t.TempDir()
	k.env = []string{"PERPKEEPER_POSTGRES_URL=postgres://keeper:it's $HOME@127.0.0.1:1/a?b=c&d=e",
		"PERPKEEPER_KEEPER_SIGNERS=0x1,0x2"}
	if err := k.writeEnvironment(); err != nil {
		t.Fatal(err)
	}
	script := `set -a; . "$0"; set +a; exec env`
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, k.EnvFile()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, entry := range k.env {
		if !strings.Contains("\n"+string(out), "\n"+entry+"\n") {
			t.Errorf("%q is not in\n%s", entry, out)
		}
	}
	if info, err := os.Stat(k.EnvFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// What is put between a keeper and the chain is in its configuration, in place of the demo's own.
func TestAdaptedConfiguration(t *testing.T) {
	s := stackOf(1, 2, 2)
	s.Adapt = func(d Devnet) (map[string]string, string) {
		return map[string]string{"CHAIN_URLS": "http://in.front", "SCANNER_PRICE_URL": ""},
			fmt.Sprintf("\n[of]\naccounts = %d\n", len(d.Accounts))
	}
	k := s.Keepers[0]
	k.dir = t.TempDir()
	env, err := k.environment()
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.Join(env, "\n") + "\n"
	if !strings.Contains(joined, "PERPKEEPER_CHAIN_URLS=http://in.front\n") ||
		strings.Contains(joined, "SCANNER_PRICE_URL") {
		t.Errorf("not as it was changed:\n%s", joined)
	}
	path, err := k.writeConfig()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), "[of]\naccounts = 2\n") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTooFewAccounts(t *testing.T) {
	if _, err := stackOf(3, 2, 5).Keepers[0].environment(); err == nil ||
		!strings.Contains(err.Error(), "5 keeper accounts") {
		t.Errorf("%v", err)
	}
}

// TIER-2: keepers share neither topics nor a database.
func TestSettingsThatCannotBeShared(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Settings)
		says   string
	}{
		{"the default", func(*Settings) {}, ""},
		{"alone on a cluster", func(s *Settings) { s.Keepers, s.Brokers = 1, []string{"a:1"} }, ""},
		{"three on a cluster", func(s *Settings) { s.Brokers = []string{"a:1"} }, "brokers: 3 keepers"},
		{"three on a database", func(s *Settings) { _ = s.Postgres.UnmarshalText([]byte("postgres://a@b/c")) },
			"postgres: 3 keepers"},
		{"none", func(s *Settings) { s.Keepers = 0 }, "keepers: 0"},
		{"a window that is all guard", func(s *Settings) { s.Window = 5e9 }, "window: 5s"},
	} {
		s := DefaultConfig().Demo
		c.change(&s)
		err := s.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The screen counts what senders have seen by tier, over all kinds.
func TestMetricsByTier(t *testing.T) {
	m, err := parseMetrics(`# TYPE sender_tier_executed_total counter
sender_tier_executed_total{kind="order",tier="1"} 5
sender_tier_executed_total{kind="deposit",tier="1"} 2
sender_tier_executed_total{kind="order",tier="2"} 1
# TYPE sender_in_flight gauge
sender_in_flight{signer="a"} 1
sender_in_flight{signer="b"} 2
`)
	if err != nil || m.executed["1"] != 7 || m.executed["2"] != 1 || m.sums["sender_in_flight"] != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	v := Snapshot{Keepers: []KeeperStatus{{Role: "Master", Executed: map[string]int{"1": 3}},
		{Role: "Backup-1", Executed: map[string]int{"1": 7, "2": 1}}}}
	if got := v.executed(); got != "  executed by   Master 7, Backup-1 1\n" {
		t.Errorf("executed by %s", got)
	}
}
