package keeperctl

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/devnettest"
)

// mostLines is what an operator has to look at of a region's configuration.
const mostLines = 25

var settingLine = regexp.MustCompile(`(?m)^[A-Za-z_]+ ?=`)

// newcomer is a devnet and a folder to be a region's, with the keystore of a keeper that the exchange knows.
func newcomer(t *testing.T, keys string) (d *devnettest.Site, signer string) {
	t.Helper()
	d = devnettest.Start(t)
	keepers, err := devnet.Accounts(devnet.FirstKeeper, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(keys, 0o750); err != nil {
		t.Fatal(err)
	}
	key := hex.EncodeToString(crypto.FromECDSA(keepers[0].Key))
	if _, complaint, code := run(t, []byte(key+"\n"), "keystore", keys, "--import"); code != exitFine {
		t.Fatal(complaint)
	}
	return d, keepers[0].Address.Hex()
}

// fields are what a file of NAME=VALUE sets.
func fields(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), "="); is && !strings.HasPrefix(line, "#") {
			all[name] = strings.Trim(value, "'")
		}
	}
	return all
}

// diagnosed runs the doctor in the environment that a file names, before anything runs. A devnet has one host and one
// source of prices, and nobody tells its operators of alarms: nothing else may be found.
func diagnosed(t *testing.T, environment map[string]string) {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	checks, answer, _ := examined(t, "--pre")
	found := strings.Split(checks, ",")
	found = slices.DeleteFunc(found, func(check string) bool {
		return slices.Contains([]string{"endpoint-hosts", "price-lone", "alert-route"}, check)
	})
	if len(found) > 0 {
		t.Errorf("the doctor has found %v: %s", found, answer)
	}
}

// Whoever answers the questions has a region without Docker that doctor has nothing to say about.
func TestInitOfBareRegion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokyo")
	d, signer := newcomer(t, filepath.Join(dir, "keys"))
	// endpoints, a handler in place of the DataStore, the keystore's signer, tier, peers, the block found, prices
	answers := strings.Join([]string{d.RPC() + "," + d.WS(), d.Deployment().Contracts.OrderHandler.Hex(), "", "2",
		"1=" + d.Keeper(1).Hex() + " 3=" + d.Keeper(2).Hex(), "", "devnet=" + d.Feed()}, "\n") + "\n"
	out, asked, code := run(t, []byte(answers), "init", "tokyo", "--bare", "--dir", dir,
		"--postgres=postgres://owner:hidden@db.example.org/keeper?sslmode=require")
	if code != exitFine {
		t.Fatal(asked)
	}
	if !strings.Contains(asked, "["+signer+"]") || !strings.Contains(asked, d.Keeper(1).Hex()) ||
		!strings.Contains(out, d.Deployment().Contracts.DataStore.Hex()) || strings.Contains(out+asked, "hidden") {
		t.Errorf("asked %s, told %s", asked, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "region.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := len(settingLine.FindAll(text, -1)); lines > mostLines+4 { // two peers have two lines each
		t.Errorf("%d lines of settings:\n%s", lines, text)
	}
	for _, process := range []string{"scanner", "statevm", "planner", "sender", "console", "prepare"} {
		if set := fields(t, filepath.Join(dir, process+".env")); !strings.Contains(set["PERPKEEPER_CONFIG"], dir) ||
			process != "scanner" && strings.Contains(set["PERPKEEPER_POSTGRES_URL"], "hidden") {
			t.Errorf("%s: %v", process, set)
		}
	}
	diagnosed(t, fields(t, filepath.Join(dir, "keeperctl.env")))

	if _, complaint, code := run(t, []byte(answers), "init", "tokyo", "--bare", "--dir", dir); code != exitFindings ||
		!strings.Contains(complaint, "is there already") || strings.Count(complaint, "\n") != 1 {
		t.Errorf("a second time: exit code %d, %s", code, complaint)
	}
}

// By flags alone a region for Compose is made: two files, and the folder of secrets that new-secrets.sh makes.
func TestInitOfComposeRegion(t *testing.T) {
	dir := t.TempDir()
	d, signer := newcomer(t, filepath.Join(dir, "keys", "tokyo"))
	secrets := filepath.Join(dir, "secrets", "tokyo")
	if _, complaint, code := run(t, nil, "init", "tokyo", "--dir", dir, "--rpc", d.RPC()+","+d.WS(), "--tier=1",
		"--venue", d.Deployment().Contracts.DataStore.Hex(), "--prices=devnet="+d.Feed()); code != exitFine {
		t.Fatal(complaint)
	}
	set := fields(t, filepath.Join(dir, "tokyo.env"))
	for name, want := range map[string]string{
		"KEEPER_NAME": "tokyo", "CHAIN_ID": "1337", "KEEPER_SIGNERS": signer, "FROZEN_ROLE": "true", "ADL_ROLE": "true",
		"DATA_STORE": d.Deployment().Contracts.DataStore.Hex(), "SECRETS_DIR": secrets,
	} {
		if set[name] != want {
			t.Errorf("%s=%s, want %s", name, set[name], want)
		}
	}
	if len(set) > mostLines {
		t.Errorf("%d lines of settings", len(set))
	}
	diagnosed(t, map[string]string{ // as docker-compose.yml gives them to the doctor
		"PERPKEEPER_CONFIG":           set["KEEPER_CONFIG"],
		"PERPKEEPER_KEEPER_CHAIN_ID":  set["CHAIN_ID"],
		"PERPKEEPER_CHAIN_URLS_FILE":  filepath.Join(secrets, "chain_urls"),
		"PERPKEEPER_VENUE_DATA_STORE": set["DATA_STORE"], "PERPKEEPER_SCANNER_START_BLOCK": set["START_BLOCK"],
		"PERPKEEPER_KEEPER_SIGNERS":      set["KEEPER_SIGNERS"],
		"PERPKEEPER_SIGNER_KEYSTORE_DIR": set["KEYS_DIR"], "PERPKEEPER_PLANNER_ADL_ROLE": set["ADL_ROLE"],
		"PERPKEEPER_KEEPER_FROZEN_ROLE": set["FROZEN_ROLE"],
		"PERPKEEPER_POSTGRES_URL":       "postgres://keeper@127.0.0.1:1/keeper",
	})
	script := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../deploy/compose/new-secrets.sh", script).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if ours, theirs := tree(t, secrets), tree(t, script); ours != theirs {
		t.Errorf("the folder of secrets is\n%s, and new-secrets.sh makes\n%s", ours, theirs)
	}
}

// tree lists a folder's files, with their modes.
func tree(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		name, _ := filepath.Rel(folder, path)
		_, _ = fmt.Fprintln(&all, info.Mode(), name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// What makes no sense, or is not given, is said in one line.
func TestInitRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"init":                                "name the region",
		"init ../tokyo":                       "name the region",
		"init tokyo":                          "--rpc: is not given",
		"init tokyo --rpc=http://127.0.0.1:1": "asking http://127.0.0.1:1 for its chain",
		"init tokyo --bare --kafka=":          "--kafka: names no broker",
		"init tokyo --bare --postgres=hidden": "--postgres: want postgres://OWNER",
	} {
		_, complaint, code := run(t, nil, append(strings.Fields(line), "--dir", t.TempDir())...)
		last := strings.TrimSpace(complaint[strings.LastIndex(strings.TrimSpace(complaint), "\n")+1:])
		if code != exitNotAsked || !strings.Contains(last, want) || strings.Contains(complaint, "hidden") {
			t.Errorf("%s: exit code %d, %q; want %q", line, code, complaint, want)
		}
	}
}

// A source of streams is made of what the exchange's DataStore says of each token.
func TestInitOfStreams(t *testing.T) {
	r := region{Tier: 1, Tokens: []token{{Decimals: 18}, {Decimals: 6}}}
	streams, err := priceKind("streams")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.addSources([]priceSource{streams}); err == nil {
		t.Error("an exchange that names no feeds has a source")
	}
	r.Tokens[1].Feed[0], r.Tokens[1].provider[0], r.Price = 3, 9, "/price"
	if err := r.addSources([]priceSource{streams}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := regionTemplates.ExecuteTemplate(&text, "region.tmpl", &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"feed = \"0x03", "decimals = 6", "key_file = \"/price/streams_key\"",
		"provider = \"0x09"} {
		if !strings.Contains(text.String(), want) || strings.Contains(text.String(), "decimals = 18") {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
