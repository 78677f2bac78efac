package keeperctl

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/devnettest"
)

// examined runs the command and returns the checks that found something.
func examined(t *testing.T, args ...string) (checks string, answer string, code int) {
	t.Helper()
	out, complaint, code := run(t, nil, append([]string{"doctor", "--output=json"}, args...)...)
	var told struct {
		Well     bool
		Findings []struct{ Check, Severity, About, Seen, Fix, Runbook string }
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		t.Fatalf("%v: %s%s", err, out, complaint)
	}
	var names []string
	for _, f := range told.Findings {
		names = append(names, f.Check)
	}
	if told.Well != (len(names) == 0) || told.Well != (code == exitFine) {
		t.Errorf("well %t, exit code %d, with %v", told.Well, code, names)
	}
	return strings.Join(names, ","), out + complaint, code
}

// Before anything runs, a region that is configured as it should be has no finding on a real exchange, and each planted
// fault is found by asking endpoints, contracts, keys and sources.
func TestDoctorBeforeTheStart(t *testing.T) {
	d := devnettest.Start(t)
	keepers, err := devnet.Accounts(devnet.FirstKeeper, 2)
	if err != nil {
		t.Fatal(err)
	}
	own := keepers[0]
	stranger, err := devnet.Accounts(devnet.FirstTrader, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := d.Deployment().Contracts
	key := func(a devnet.Account) string { return hex.EncodeToString(crypto.FromECDSA(a.Key)) }
	for name, value := range map[string]string{
		"KEEPER_CHAIN_ID": strconv.FormatUint(d.Deployment().ChainID, 10), "CHAIN_URLS": d.RPC() + "," + d.WS(),
		"SCANNER_START_BLOCK": strconv.FormatUint(d.Deployment().Block, 10),
		"SCANNER_PRICE_URL":   d.Feed(), "KEEPER_SIGNERS": own.Address.Hex(), "PLANNER_ADL_ROLE": "true",
		"KEEPER_FROZEN_ROLE": "true", "SIGNER_DEV": "true", "SIGNER_DEV_KEYS": key(own),
		"POSTGRES_URL": "postgres://keeper@127.0.0.1:1/keeper", // nobody asks it
		// the other processes' settings stand in the same environment
		"SCANNER_MAX_HEAD_AGE": "15s", "SENDER_MAX_IN_FLIGHT": "4", "KEEPERCTL_DISKS": "", // not this machine's own
	} {
		t.Setenv("PERPKEEPER_"+name, value)
	}
	t.Setenv("PERPKEEPER_VENUE_DATA_STORE", c.DataStore.Hex())
	if checks, answer, _ := examined(t, "--pre"); checks != "" {
		t.Fatalf("a healthy region: %s", answer)
	}
	out, complaint, code := run(t, nil, "doctor", "--pre")
	if code != exitFine || complaint != "" || !strings.Contains(out, "ok  venue") || strings.Contains(out, "!!") {
		t.Errorf("exit code %d, %s%s", code, out, complaint)
	}
	for _, p := range []struct{ name, key, value, want string }{
		{"an endpoint that is down", "CHAIN_URLS", d.RPC() + ",http://127.0.0.1:1", "endpoint-reachable"},
		{"another EventEmitter", "VENUE_EVENT_EMITTER", c.Reader.Hex(), "venue-emitter"},
		{"a DataStore that is none", "VENUE_DATA_STORE", c.Reader.Hex(), "venue-contract"},
		{"a start in the midst of the deployment", "SCANNER_START_BLOCK",
			strconv.FormatUint(d.Node().Head().Number.Uint64()-5, 10), "venue-start-block"},
		{"a key of somebody without roles", "SIGNER_DEV_KEYS", key(own) + "," + key(stranger[0]), "signer-unlisted"},
		{"a peer's key", "SIGNER_DEV_KEYS", key(keepers[1]), "signer-key,signer-unlisted"},
		{"a source that is away", "SCANNER_PRICE_URL", "http://127.0.0.1:1", "price-source,price-token"},
		{"no source", "SCANNER_PRICE_URL", "", "price-sources"},
		{"a folder that is none", "KEEPERCTL_DISKS", "/there/is/none", "machine-disk"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Setenv("PERPKEEPER_"+p.key, p.value)
			checks, answer, _ := examined(t, "--pre")
			for want := range strings.SplitSeq(p.want, ",") {
				if !strings.Contains(checks, want) {
					t.Errorf("found %q, want %s\n%s", checks, want, answer)
				}
			}
		})
	}
	t.Run("a signer without roles", func(t *testing.T) {
		t.Setenv("PERPKEEPER_KEEPER_SIGNERS", stranger[0].Address.Hex())
		t.Setenv("PERPKEEPER_SIGNER_DEV_KEYS", key(stranger[0]))
		if checks, answer, _ := examined(t, "--pre"); strings.Count(checks, "signer-role") != 4 {
			t.Errorf("found %q: %s", checks, answer)
		}
	})
	t.Run("a binding of a stranger", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "keeper.toml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "[[planner.bindings]]\nsigner = %q\nlanes = [\"order\"]\n",
			stranger[0].Address.Hex()), 0o600); err != nil {
			t.Fatal(err)
		}
		if checks, answer, _ := examined(t, "--pre", "--config", file); checks != "signer-binding" {
			t.Errorf("found %q: %s", checks, answer)
		}
	})
	t.Run("a chain of another id", func(t *testing.T) {
		t.Setenv("PERPKEEPER_KEEPER_CHAIN_ID", "97")
		if checks, answer, _ := examined(t, "--pre"); strings.Count(checks, "endpoint-chain") != 2 ||
			strings.Contains(answer, "panic") {
			t.Errorf("found %q: %s", checks, answer)
		}
	})
	t.Run("what is not sensible is no finding", func(t *testing.T) {
		t.Setenv("PERPKEEPER_TIER_PRIORITY", "4")
		out, complaint, code := run(t, nil, "doctor", "--pre")
		if code != exitNotAsked || out != "" || !strings.Contains(complaint, "tier.priority: 4 is not between 1") {
			t.Errorf("exit code %d, %s%s", code, out, complaint)
		}
	})
}

// Where stores are away, each is one finding.
func TestDoctorWithoutStores(t *testing.T) {
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:hidden@127.0.0.1:1/keeper?sslmode=disable")
	t.Setenv("PERPKEEPER_CHAIN_URLS", "http://127.0.0.1:1")
	t.Setenv("PERPKEEPER_KAFKA_BROKERS", "127.0.0.1:1")
	t.Setenv("PERPKEEPER_VENUE_DATA_STORE", "0xBcd4042DE499D14e55001CcbB24a551F3b954096")
	t.Setenv("PERPKEEPER_KEEPERCTL_PROCESSES", "sender=http://127.0.0.1:1")
	t.Setenv("PERPKEEPER_KEEPERCTL_PATIENCE", "3s")
	checks, answer, _ := examined(t)
	for _, want := range []string{"endpoint-reachable", "kafka-reachable", "postgres-reachable", "state-ready",
		"price-sources", "signer-keys"} {
		if strings.Count(checks, want) != 1 {
			t.Errorf("%s: found %q", want, checks)
		}
	}
	if strings.Contains(answer, "hidden") {
		t.Errorf("a password is shown: %s", answer)
	}
}
