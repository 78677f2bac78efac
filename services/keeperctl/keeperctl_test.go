package keeperctl

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// run executes a command line and returns what it printed and its exit code.
func run(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), args, IO{In: bytes.NewReader(stdin), Out: &out, Err: &err})
	return out.String(), err.String(), code
}

// Every command and verb has help that shows how it is used, and says what it does.
func TestEveryCommandHasHelp(t *testing.T) {
	var visit func(path []string, cmd *cobra.Command)
	visit = func(path []string, cmd *cobra.Command) {
		if name := cmd.Name(); name == "completion" || name == "help" {
			return
		}
		out, complaint, code := run(t, nil, append(path, "--help")...)
		if code != exitFine || complaint != "" || !strings.Contains(out, "Usage:\n  keeperctl") || cmd.Short == "" &&
			len(path) > 0 {
			t.Errorf("%v: exit code %d, %s%s", path, code, out, complaint)
		}
		for _, c := range cmd.Commands() {
			visit(append(append([]string(nil), path...), c.Name()), c)
		}
	}
	visit(nil, newRoot(IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
}

// What makes no sense is refused with one line and its own exit code, before anybody is asked.
func TestNonsenseIsRefused(t *testing.T) {
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:hidden@127.0.0.1:1/keeper")
	t.Setenv("PERPKEEPER_CHAIN_URLS", "http://127.0.0.1:1")
	for line, want := range map[string]string{
		"topics all":                       `unexpected argument "all"`,
		"signr list":                       "did you mean signer?",
		"signer":                           "usage: keeperctl signer list | pause SIGNER REASON",
		"signer lits":                      "usage: keeperctl signer",
		"signer list --keeperctl.lmit=3":   "--keeperctl.lmit: unknown flag",
		"signer list --output yaml":        `--output: "yaml" is neither table nor json`,
		"signer pause 0x1 --output json":   "--output: unknown flag",
		"prepare now":                      `unexpected argument "now"`,
		"health brokers":                   `unexpected argument "brokers"`,
		"wallet verify --chain.urls=x":     "--chain.urls: unknown flag",
		"keystore x --import=0xsecret":     "--import: neither true nor false",
		"delayed list --keeperctl.limit=0": "limit: 0 is less than 1",
		"help signr":                       `unknown command "signr"`,
	} {
		out, complaint, code := run(t, nil, strings.Fields(line)...)
		if code != exitNotAsked || out != "" || strings.Count(complaint, "\n") != 1 ||
			!strings.Contains(complaint, want) || strings.Contains(complaint, "secret") {
			t.Errorf("%s: exit code %d, %q, %q; want %q", line, code, out, complaint, want)
		}
	}
}

// Where nobody answers, that is no finding.
func TestNobodyToAsk(t *testing.T) {
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:hidden@127.0.0.1:1/keeper?sslmode=disable")
	t.Setenv("PERPKEEPER_CHAIN_URLS", "http://127.0.0.1:1")
	t.Setenv("PERPKEEPER_KEEPERCTL_PATIENCE", "2s")
	for _, line := range []string{"signer list", "wallet verify", "generations list"} {
		out, complaint, code := run(t, nil, strings.Fields(line)...)
		if code != exitNotAsked || out != "" || strings.Count("\n"+complaint, "\nkeeperctl: ") != 1 ||
			strings.Contains(complaint, "hidden") {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out, complaint)
		}
	}
}

// A shell completes commands, verbs, settings and formats.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"sig":                              "signer\t",
		"signer pa":                        "pause\t",
		"signer list --keeperctl.lim":      "--keeperctl.limit\t",
		"signer list --output ":            "json",
		"wallet ":                          "verify\t",
		"generations switch 2 --keeperctl": "--keeperctl.reason\t",
	} {
		args := append([]string{"__complete"}, strings.Fields(line)...)
		if strings.HasSuffix(line, " ") {
			args = append(args, "")
		}
		if out, _, code := run(t, nil, args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, %q", line, code, out)
		}
	}
	if out, _, code := run(t, nil, "completion", "bash"); code != 0 || !strings.Contains(out, "__start_keeperctl") {
		t.Errorf("the script for bash: exit code %d", code)
	}
}

// A table and its JSON say the same; no cell can break a line or a column.
func TestTables(t *testing.T) {
	rows := newTable("signer", "next nonce", "paused", "last error")
	rows.add("0xaa", uint64(7), true, "line one\nline two\tand a column")
	rows.add("0xbb", 8, false, time.Minute)
	var out strings.Builder
	if err := (printer{Writer: &out}).table(rows); err != nil {
		t.Fatal(err)
	}
	want := "signer  next nonce  paused  last error\n" +
		"0xaa    7           true    line one\\u000aline two\\u0009and a column\n" +
		"0xbb    8           false   1m0s\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := (printer{Writer: &out, json: true}).table(rows); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0]["nextNonce"] != 7.0 || got[0]["paused"] != true ||
		got[0]["lastError"] != "line one\nline two\tand a column" || got[1]["lastError"] != "1m0s" {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	if err := (printer{Writer: &out, json: true}).table(&table{empty: "nothing"}); err != nil ||
		out.String() != "[]\n" {
		t.Errorf("no rows: %q, %v", out.String(), err)
	}
}
