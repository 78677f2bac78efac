package config_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit them only if you understand the difference")

// everything has a key of every type there is.
type everything struct {
	Kafka   kafka   `toml:"kafka"`
	Scanner scanner `toml:"scanner"`
}

type kafka struct {
	Brokers  []string      `toml:"brokers" help:"addresses of the brokers to ask first"`
	Password secret.String `toml:"password" help:"SASL password"`
}

func (k kafka) Validate() error {
	if len(k.Brokers) == 0 {
		return errors.New("brokers: empty (name at least one, such as 127.0.0.1:9092)")
	}
	return nil
}

type scanner struct {
	RPC           []secret.URL     `toml:"rpc" help:"endpoints of the chain"`
	Database      secret.URL       `toml:"database" help:"where to store"`
	Poll          time.Duration    `toml:"poll" help:"how often to ask"`
	Confirmations uint64           `toml:"confirmations" help:"blocks to wait"`
	Offset        int              `toml:"offset" help:"where to begin"`
	Small         int8             `toml:"small" help:"a small number"`
	Share         float64          `toml:"share" help:"part of the whole"`
	Enabled       bool             `toml:"enabled" help:"whether to work"`
	Name          string           `toml:"name" help:"what to call it"`
	Peers         []netip.Addr     `toml:"peers" help:"the others"`
	Steps         []int64          `toml:"steps" help:"numbers"`
	Window        window           `toml:"window"`
	Param         []param          `toml:"param" help:"values to read by call"`
	Clock         func() time.Time `toml:"-"`
}

func (s scanner) Validate() error {
	var problems []error
	if s.Poll <= 0 {
		problems = append(problems, fmt.Errorf("poll: %s is not positive (write a duration such as 500ms)", s.Poll))
	}
	if s.Share > 1 {
		problems = append(problems, fmt.Errorf("scanner.share: %g is more than the whole (use 1 or less)", s.Share))
	}
	return errors.Join(problems...)
}

type window struct {
	From time.Duration `toml:"from" help:"begin"`
	To   time.Duration `toml:"to" help:"end"`
}

func (w window) Validate() error {
	if w.To < w.From {
		return fmt.Errorf("ends (%s) before it begins (%s)", w.To, w.From)
	}
	return nil
}

type param struct {
	Key   string        `toml:"key" help:"name of the value"`
	Slot  uint64        `toml:"slot" help:"where it is"`
	Token secret.String `toml:"token" help:"how to get at it"`
	Limit window        `toml:"limit"`
	Alias []alias       `toml:"alias" help:"other names"`
}

func (p param) Validate() error {
	if p.Key == "" {
		return errors.New("key: empty (name the value)")
	}
	return nil
}

type alias struct {
	Name string `toml:"name" help:"the other name"`
}

// Validate speaks of two sections at once.
func (e everything) Validate() error {
	if e.Scanner.Offset > 0 && e.Kafka.Password.IsSet() {
		return errors.New("scanner.offset: cannot be used together with kafka.password (drop one)")
	}
	return nil
}

func defaults() everything {
	return everything{
		Kafka: kafka{Brokers: []string{"127.0.0.1:9092"}},
		Scanner: scanner{
			Poll: time.Second, Confirmations: 15, Share: 0.5, Name: "n",
			Param: []param{{Key: "default", Slot: 1}},
		},
	}
}

// Each folder of testdata is one way to configure a process: keeper.toml, env (NAME=value lines) and args (one per
// line), all optional, and want, which is the configuration in force as TOML, or every problem.
func TestLoadGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Chdir(dir)
			var args []string
			if _, err := os.Stat("keeper.toml"); err == nil {
				args = append(args, "--config", "keeper.toml")
			}
			for _, line := range lines(t, "env") {
				name, value, _ := strings.Cut(line, "=")
				t.Setenv(name, value)
			}
			got := load(t, append(args, lines(t, "args")...))
			if strings.Contains(got, "hunter2") {
				t.Errorf("the secret is printed:\n%s", got)
			}
			golden(t, got)
		})
	}
}

// load returns the configuration in force, or all problems.
func load(t *testing.T, args []string) string {
	cfg := defaults()
	set, err := config.New("scanner", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Load(args); err != nil {
		return err.Error() + "\n"
	}
	var b bytes.Buffer
	if err := set.WriteTOML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func lines(t *testing.T, name string) (all []string) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

func golden(t *testing.T, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("want", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("want")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A command that needs a part of the configuration is asked for no more, and passes over what it leaves out.
func TestRestrict(t *testing.T) {
	type two struct {
		Limit  int    `toml:"limit" help:"h"`
		Signer string `toml:"signer" help:"h"`
	}
	type all struct {
		Own   two         `toml:"keeperctl"`
		Kafka unreachable `toml:"kafka"`
		Chain two         `toml:"chain"`
	}
	cfg := all{Own: two{Signer: "kept"}}
	set, err := config.New("keeperctl", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	set.Restrict("keeperctl.limit", "chain")
	t.Setenv("PERPKEEPER_KEEPERCTL_SIGNER", "another")
	t.Setenv("PERPKEEPER_KEEPERCTL_LIMIT", "7")
	t.Setenv("PERPKEEPER_KAFKA_BROKERS", "nowhere")
	if _, err := set.Load([]string{"--chain.signer=x"}); err != nil || cfg.Own.Limit != 7 || cfg.Own.Signer != "kept" ||
		cfg.Chain.Signer != "x" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := set.Load([]string{"--keeperctl.signer=x"}); err == nil ||
		!strings.Contains(err.Error(), "unknown flag") {
		t.Errorf("a flag that was left out: %v", err)
	}
	t.Setenv("PERPKEEPER_KEEPERCTL_SIGNR", "x")
	if _, err := set.Load(nil); err == nil ||
		!strings.Contains(err.Error(), "PERPKEEPER_KEEPERCTL_SIGNR: unknown variable") {
		t.Errorf("a mistyped variable: %v", err)
	}
}

// Of a borrowed section the keys that are described are read, and what else its process knows is passed over; what
// stands deeper is held to its description.
func TestBorrow(t *testing.T) {
	type inner struct {
		Depth int `toml:"depth" help:"h"`
	}
	var cfg struct {
		Scanner struct {
			Limit int   `toml:"limit" help:"h"`
			Inner inner `toml:"inner"`
		} `toml:"scanner"`
	}
	set, err := config.New("keeperctl", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	set.Borrow("scanner")
	t.Setenv("PERPKEEPER_SCANNER_TAKEOVER_AFTER", "1m")
	path := filepath.Join(t.TempDir(), "keeper.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[scanner]\nlimit = 3\nmax_head_age = \"1s\"\n[scanner.inner]\ndepth = 2\n[[scanner.param]]\nname = \"x\"\n")
	if _, err := set.Load([]string{"--config", path}); err != nil || cfg.Scanner.Limit != 3 ||
		cfg.Scanner.Inner.Depth != 2 {
		t.Errorf("%+v, %v", cfg, err)
	}
	write("[scanner.inner]\ndeepth = 2\n")
	if _, err := set.Load([]string{"--config", path}); err == nil ||
		!strings.Contains(err.Error(), "scanner.inner.deepth: unknown key") {
		t.Errorf("a mistyped key: %v", err)
	}
}

// unreachable is a section that is wrong unless it is left out.
type unreachable struct {
	Brokers string `toml:"brokers" help:"h"`
}

func (unreachable) Validate() error { return errors.New("brokers: none") }
