package keeperctl

import (
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/setting/secret"
)

// LIQ-15: keeperctl sends an emergency's calls with a key that signs nothing else; off by default, after a rehearsal,
// with the transaction on record before it is broadcast.
func TestEmergencyIsSent(t *testing.T) {
	a := newAlarm(t)
	a.cfg.Emergency.Actions = []string{"raise_margin", "pause_positions"}
	a.cfg.Own.EmergencySigner.Dev = true
	a.cfg.Own.EmergencySigner.DevKeys = []secret.String{secret.New(hex.EncodeToString(a.account.PrivateKey))}
	before := a.factor()
	out := a.want("run raise_margin nobody executes", "nothing was done; it would succeed")
	calldata := handed(out, "calldata")
	if len(calldata) != 1 {
		t.Fatalf("planned %d calls", len(calldata))
	}
	// whatever the new value is: the last word of the call
	word := len(calldata[0]) - 64

	a.cfg.Own.DryRun = false
	a.want("run raise_margin handed over", "have 0x")
	if a.factor().Cmp(before) != 0 {
		t.Fatal("sent, though no call is configured")
	}
	a.cfg.Emergency.Calls = []emergency.Allowed{{To: a.cfg.Emergency.Contract,
		Calldata: "0x" + calldata[0][:word] + strings.Repeat("?", 64)}}
	a.cfg.Own.DryRun = true
	a.want("run raise_margin a dry run", "nothing was done; it would succeed")
	if a.factor().Cmp(before) != 0 {
		t.Fatal("a dry run has sent something")
	}
	a.cfg.Own.DryRun = false
	a.want("run raise_margin nobody executes", ": done")
	raised := new(big.Int).Div(new(big.Int).Mul(before, big.NewInt(150)), big.NewInt(100))
	if got := a.factor(); got.Cmp(raised) != 0 {
		t.Errorf("the factor is %s, want %s", got, raised)
	}
	a.mustBeSent(emergency.RaiseMargin)

	nonce := a.nonce()
	a.want("run pause_positions bad debt", "error: sending pause_positions", "not among those that are configured")
	if a.nonce() != nonce {
		t.Error("the signer has signed what is not configured")
	}
	a.cfg.Keeper.Signers = []chain.Address{a.cfg.Emergency.Account}
	a.want("run raise_margin a shared key", "error: emergency.account", "is one of keeper.signers")
	a.cfg.Keeper.Signers = nil
	a.cfg.Own.EmergencySigner.DevKeys = []secret.String{secret.New(strings.Repeat("11", 32))}
	a.want("run raise_margin another key", "error: keeperctl.emergency_signer is the key of")
}

// mustBeSent demands that an action's transaction is on record as sent and as done.
func (a *alarm) mustBeSent(action emergency.Action) {
	a.t.Helper()
	entries, err := a.store.List(a.t.Context(), 100)
	if err != nil {
		a.t.Fatal(err)
	}
	sent := map[emergency.Stage]chain.Hash{}
	for _, e := range entries {
		if e.Action == action && !e.DryRun && !e.TxHash.IsZero() {
			sent[e.Stage] = e.TxHash
		}
	}
	if len(sent) != 2 || sent[emergency.Sent] != sent[emergency.Done] {
		a.t.Errorf("on record: %v", sent)
	}
}

func (a *alarm) nonce() uint64 {
	a.t.Helper()
	key, err := crypto.ToECDSA(a.account.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	n, err := a.chain.PendingNonceAt(a.t.Context(), crypto.PubkeyToAddress(key.PublicKey))
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// The key that an emergency's calls are sent with is read where the runbook says, and so are this keeper's signers,
// none of which it may be.
func TestEmergencySignerIsConfigured(t *testing.T) {
	const account, keystores = "0x00000000000000000000000000000000000000e1", "/keys/emergency"
	file := filepath.Join(t.TempDir(), "region.toml")
	text := "[emergency]\nactions = [\"notify\"]\naccount = \"" + account + "\"\n[[emergency.calls]]\n" +
		"to = \"" + account + "\"\ncalldata = \"0x12345678????????\"\n[keeperctl.emergency_signer]\nkeystore_dir = \"" +
		keystores + "\"\n[keeper]\nsigners = [\"" + account + "\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:hidden@127.0.0.1:5432/keeper")
	t.Setenv("PERPKEEPER_VENUE_DATA_STORE", account)
	out, complaint, code := run(t, nil, "emergency", "run", "--config", file, "--print-config")
	for _, line := range []string{"[keeperctl.emergency_signer]\nkeystore_dir = \"" + keystores + "\"",
		"\nsigners = [\"" + account + "\"]\n"} {
		if code != 0 || !strings.Contains(out, line) {
			t.Errorf("exit code %d, %s the configuration lacks %s:\n%s", code, complaint, line, out)
		}
	}
}
