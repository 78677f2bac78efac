package config_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/service/config"
)

// Mistakes in the structures are the program's; New names each, so that they are found by the first test that starts a
// service.
func TestNewRefusesStructuresThatCannotBeConfigured(t *testing.T) {
	type fine struct {
		Poll time.Duration `toml:"poll" help:"h"`
	}
	for want, root := range map[string]any{
		"is not a pointer to a structure": fine{},
		"poll is not in a section":        &fine{},
		"[scaner] is not a known section": &struct {
			S fine `toml:"scaner"`
		}{},
		`S: toml tag "" is not a key`: &struct{ S fine }{},
		`S: toml tag "Scanner" is not a key`: &struct {
			S fine `toml:"Scanner"`
		}{},
		"Poll: the help tag is missing": &struct {
			S struct {
				Poll time.Duration `toml:"poll"`
			} `toml:"scanner"`
		}{},
		"Rows: the help tag is missing": &struct {
			S struct {
				Rows []fine `toml:"rows"`
			} `toml:"scanner"`
		}{},
		"Inner: the help tag is missing": &struct {
			S struct {
				Rows []struct {
					Inner string `toml:"inner"`
				} `toml:"rows" help:"h"`
			} `toml:"scanner"`
		}{},
		"a map[string]string cannot be configured": &struct {
			S struct {
				M map[string]string `toml:"m" help:"h"`
			} `toml:"scanner"`
		}{},
		"a *string cannot be configured": &struct {
			S struct {
				P *string `toml:"p" help:"h"`
			} `toml:"scanner"`
		}{},
		"scanner.a.b and scanner.a_b share the variable PERPKEEPER_SCANNER_A_B": &struct {
			S struct {
				A struct {
					B string `toml:"b" help:"h"`
				} `toml:"a"`
				AB string `toml:"a_b" help:"h"`
			} `toml:"scanner"`
		}{},
	} {
		_, err := config.New("scanner", root)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestNewRefusesTheSameKeyInTwoRoots(t *testing.T) {
	a, b := defaults(), defaults()
	if _, err := config.New("scanner", &a, &b); err == nil || !strings.Contains(err.Error(), "share the variable") {
		t.Fatalf("got %v", err)
	}
}

// Whatever reads a section's variables must be able to tell where the section's name ends.
func TestSectionsAreSingleWords(t *testing.T) {
	all := config.Sections
	for _, name := range all {
		if strings.ContainsAny(name, "_.") || name != strings.ToLower(name) {
			t.Errorf("section %q is not a single lower case word", name)
		}
	}
	for _, process := range []string{"scanner", "statevm", "planner", "sender", "console", "keeperctl", "devnet",
		"demo"} {
		if !slices.Contains(all, process) {
			t.Errorf("process %s has no section", process)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("a section is listed twice: %q", all)
	}
}

func TestHelpNamesEverything(t *testing.T) {
	cfg := defaults()
	set, err := config.New("scanner", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := set.WriteHelp(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "good_defaults", "help")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Questions that a new user asks are answered before anything is configured.
func TestRequestsAreAnsweredWithoutAGoodConfiguration(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--version"}, {"--print-metrics"}} {
		cfg := everything{} // Its validation fails.
		set, err := config.New("scanner", &cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.Load([]string{"--print-config"}); err == nil {
			t.Fatal("the configuration is good")
		}
		if _, err := set.Load(append(args, "--config=absent")); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestArgumentsAreHandedOn(t *testing.T) {
	cfg := defaults()
	set, err := config.New("keeperctl", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := set.Load([]string{"delayed", "--scanner.poll=3s", "run", "--", "--id"})
	if err != nil || !slices.Equal(req.Args, []string{"delayed", "run", "--id"}) || cfg.Scanner.Poll != 3*time.Second {
		t.Fatalf("got %q, %v, poll %s", req.Args, err, cfg.Scanner.Poll)
	}
}

// demanding is a configuration whose defaults are not valid, and whose root repeats what a section says of itself.
type demanding struct {
	Scanner required `toml:"scanner"`
}

func (d demanding) Validate() error {
	return errors.Join(errors.New("scanner.poll: missing (set it)"), errors.New("scanner.share: missing (set it)"))
}

type required struct {
	Poll  time.Duration `toml:"poll" help:"how often"`
	Share float64       `toml:"share" help:"how much"`
}

func (r required) Validate() error {
	return errors.Join(errors.New("poll: missing (set it)"), errors.New("share: missing (set it)"))
}

// A value that does not fit is not called missing as well, and no problem is told twice.
func TestEachProblemIsToldOnce(t *testing.T) {
	var cfg demanding
	set, err := config.New("scanner", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Load([]string{"--scanner.poll=soon"})
	want := `--scanner.poll: "soon" is not a duration (write it with a unit: 500ms, 10s, 2m)` +
		"\nscanner.share: missing (set it)"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
