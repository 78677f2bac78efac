package keeperctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
)

const (
	oneAddress   = "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0"
	otherAddress = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
)

func TestDeploymentsFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"names and addresses": {`{"EventEmitter": "` + oneAddress + `", "DataStore": "` + otherAddress + `"}`, ""},
		"objects": {`{"bsc": {"EventEmitter": {"address": "` + oneAddress +
			`", "args": [1]}, "dataStore": {"address": "` + otherAddress + `"}}}`, ""},
		"a list": {`[{"contractName": "EventEmitter", "address": "` + oneAddress +
			`"}, {"name": "DataStore", "address": "` + otherAddress + `"}]`, ""},
		"two of a name": {`{"a": {"DataStore": "` + oneAddress + `"}, "b": {"DataStore": "` + otherAddress + `"}}`,
			"has two addresses"},
		"nothing": {`{"Timelock": "` + oneAddress + `"}`, "names neither an EventEmitter nor a DataStore"},
		"no JSON": {`EventEmitter`, "is not valid JSON"},
	} {
		file := filepath.Join(t.TempDir(), "deployments.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		venue, err := readDeployments(file)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || venue.EventEmitter.Hex() != oneAddress || venue.DataStore.Hex() != otherAddress:
			t.Errorf("%s: %+v, %v", name, venue, err)
		}
	}
}

// What was found are lines of an env file; what was not, or not clearly, are comments that say so.
func TestAddressesAreLinesOfAnEnvFile(t *testing.T) {
	one, err := chain.ParseAddress(oneAddress)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	found := gmx.Found{Config: gmx.Config{EventEmitter: one},
		Several: map[string][]chain.Address{"order_handler": {one, {1}}}}
	if err := writeAddresses(printer{Writer: &b}, found); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "#") && line != "EVENT_EMITTER="+oneAddress+"\n" {
			t.Errorf("a line that was not found: %s", line)
		}
	}
	if text := b.String(); !strings.Contains(text, "# ORDER_HANDLER is one of") ||
		!strings.Contains(text, "# ADL_HANDLER was not found") {
		t.Errorf("what was not found is not said:\n%s", text)
	}
}
