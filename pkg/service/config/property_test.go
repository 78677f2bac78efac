package config_test

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
)

// What is printed is what is in force: read back, it gives the same configuration.
func TestPrintedConfigurationReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keeper.toml")
	rapid.Check(t, func(t *rapid.T) {
		want := drawEverything(t)
		printed := printTOML(t, &want)
		must(t, os.WriteFile(path, []byte(printed), 0o600))
		got := defaults()
		set, err := config.New("scanner", &got)
		must(t, err)
		if _, err := set.Load([]string{"--config", path}); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read back\n%#v\nprinted\n%s\nfrom\n%#v", got, printed, want)
		}
	})
}

func printTOML(t *rapid.T, cfg *everything) string {
	set, err := config.New("scanner", cfg)
	must(t, err)
	var b bytes.Buffer
	must(t, set.WriteTOML(&b))
	return b.String()
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drawEverything draws a valid configuration without secrets. Lists are never nil, as they are not when they have been
// read.
func drawEverything(t *rapid.T) everything {
	text, duration := rapid.String(),
		rapid.Map(rapid.Int64Min(1), func(i int64) time.Duration { return time.Duration(i) })
	e := everything{
		Kafka: kafka{Brokers: rapid.SliceOfN(text, 1, 3).Draw(t, "brokers")},
		Scanner: scanner{
			RPC:           []secret.URL{secret.MustURL("http://127.0.0.1:8545")},
			Poll:          duration.Draw(t, "poll"),
			Confirmations: rapid.OneOf(rapid.Uint64(), rapid.Uint64Min(math.MaxInt64)).Draw(t, "confirmations"),
			Offset:        rapid.Int().Draw(t, "offset"),
			Small:         rapid.Int8().Draw(t, "small"),
			Share:         rapid.Float64Max(1).Draw(t, "share"),
			Enabled:       rapid.Bool().Draw(t, "enabled"),
			Name:          text.Draw(t, "name"),
			Peers:         []netip.Addr{},
			Steps:         rapid.SliceOf(rapid.Int64()).Draw(t, "steps"),
			Param:         []param{},
		},
	}
	e.Scanner.Window.To = duration.Draw(t, "to")
	for range rapid.IntRange(0, 3).Draw(t, "params") {
		e.Scanner.Param = append(e.Scanner.Param, param{
			Key:  rapid.StringN(1, -1, -1).Draw(t, "key"),
			Slot: rapid.Uint64().Draw(t, "slot"),
			Alias: rapid.SliceOfN(rapid.Map(text, func(s string) alias { return alias{Name: s} }), 0, 2).
				Draw(t, "aliases"),
		})
	}
	return e
}

// Wherever a secret is written, well or badly, nothing that comes out of this package repeats it.
func TestNoOutputHoldsASecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keeper.toml")
	inFile := []string{
		`password = "%s"`, `password = '%s'`, `password = """%s"""`, `password = %s`, `password = "%s`,
		`password = '%s`, `password = ["%s"]`,
		`password = { a = "%s" }`, `password = "a" %s`, `password = "\q%s"`, `password = "a%s` + "\x01" + `"`,
		`password = '''%s`,
		`password "%s"`, `password: %s`,
		`password == "%s"`, `password = {"%s"`, `password = ["%s" "b"]`, `password = 0x%s`, `password = t%s`,
		`password = -%s`, `password = 1_%s`,
		`password = 20%s`, `password = "%s"` + "\n" + `password = "%[1]s"`, `passwort = "%s"`,
		`brokers = ["b"] # %s`,
	}
	inArgs := []string{
		"--kafka.password=%s", "--kafka.passwort=%s", "--kafka.password:%s", "-kafka.password=%s", "--=%s",
		"--scanner.database=%s",
		"--scanner.database=postgres://u:%s@h:port/db", "--scanner.database=postgres://u:%s@h/db",
		"--scanner.rpc=http://h/%s,%[1]s",
		"--print-config=%s", "--help=%s",
	}
	inEnv := []string{
		"KAFKA_PASSWORD=%s", "KAFKA_PASSWORT=%s", "SCANNER_DATABASE=x%s", "SCANNER_RPC=http://h,postgres://h h/%s",
		"SCANNER_PARAM=%s",
		"SCANNER_DATABASE=http://%s\x01",
	}

	rapid.Check(t, func(rt *rapid.T) {
		token := rapid.StringMatching(`[a-z0-9]{12,30}|[0-9]{12,30}|[A-Z]{2}[a-zA-Z0-9-]{12,30}`).Draw(rt, "token")
		line := fmt.Sprintf(rapid.SampledFrom(inFile).Draw(rt, "file"), token)
		must(rt, os.WriteFile(path, []byte("[kafka]\n"+line+"\n"), 0o600))
		args := []string{"--config", path}
		if rapid.Bool().Draw(rt, "with flag") {
			args = append(args, fmt.Sprintf(rapid.SampledFrom(inArgs).Draw(rt, "flag"), token))
		}
		if rapid.Bool().Draw(rt, "with variable") {
			name, value, _ := strings.Cut(fmt.Sprintf(rapid.SampledFrom(inEnv).Draw(rt, "variable"), token), "=")
			must(rt, os.Setenv("PERPKEEPER_"+name, value)) //nolint:usetesting // until the round ends, not the test
			defer func() { must(rt, os.Unsetenv("PERPKEEPER_"+name)) }()
		}
		if out := everyOutput(rt, args); strings.Contains(strings.ToLower(out), strings.ToLower(token)) {
			rt.Fatalf("%q with %q prints\n%s", line, args[2:], out)
		}
	})
}

// everyOutput loads and returns all there is to print, whether loading worked or not.
func everyOutput(t *rapid.T, args []string) string {
	cfg := defaults()
	set, err := config.New("scanner", &cfg)
	must(t, err)
	var b bytes.Buffer
	if _, err := set.Load(args); err != nil {
		b.WriteString(err.Error() + "\n")
	}
	must(t, set.WriteTOML(&b))
	must(t, set.WriteHelp(&b))
	set.Each(func(key, value string) { fmt.Fprintf(&b, "%s=%s\n", key, value) })
	fmt.Fprintf(&b, "%v %+v %#v\n", cfg, cfg, cfg)
	return b.String()
}
