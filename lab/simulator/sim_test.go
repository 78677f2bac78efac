package simulator

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/tier"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts; commit them only if you understand the "+
	"difference")

// long reports whether to play everything as the scenarios say: some minutes on a quiet machine.
func long() bool { return os.Getenv("KEEPER_LONG") != "" }

func run(t *testing.T, s Scenario, transcribe bool) Result {
	t.Helper()
	r, err := Run(t.Context(), s, transcribe)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func load(t *testing.T, path string) Scenario {
	t.Helper()
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TIER-1, TIER-8, TIER-9, TIER-10, TIER-11, TIER-17, TIER-18, NON-6: what the scenarios say comes true. With
// KEEPER_LONG=1 for all their seeds, otherwise for one, in less time where nothing that goes wrong would be cut off,
// and under the race detector a few of them.
func TestScenarios(t *testing.T) {
	all, err := LoadAll("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			if underRace && !long() && !slices.Contains([]string{"01-normal", "04-common-restart", "11c-reorg-5"},
				s.Name) {
				t.Skip("the race detector sees the same code in the others")
			}
			if !long() {
				shorten(&s)
			}
			r := run(t, s, false)
			var table strings.Builder
			if err := r.Write(&table); err != nil {
				t.Fatal(err)
			}
			if t.Log(table.String()); len(r.Misses()) > 0 {
				t.Fail()
			}
		})
	}
}

// shorten leaves enough of a scenario to see what it is about: half an hour of a day. At a thousand jobs a day one
// play may be without any.
func shorten(s *Scenario) {
	if s.Seeds = 1; s.Jobs.PerDay > 0 {
		s.Seeds = 5
	}
	most := 30 * time.Minute
	if len(s.Faults) == 0 {
		most = 2 * time.Minute
	}
	s.Duration = min(s.Duration, Span(most))
}

// What a scenario says must be able to fail. The policy delay sends twice after a common restart: its buffer equals the
// first backup's delay (TIER-9).
func TestCommonRestartFailsUnderThePolicyDelay(t *testing.T) {
	s := load(t, "scenarios/04-common-restart.toml")
	s.Policy, s.Seeds = tier.PolicyDelay, 1
	if misses := run(t, s, false).
		Misses(); !slices.ContainsFunc(misses, func(m string) bool { return strings.HasPrefix(m, "duplicates is") }) {
		t.Errorf("missed: %q", misses)
	}
}

// Without its faults a scenario does not show what it expects of them.
func TestTakeoverNeedsAFault(t *testing.T) {
	s := load(t, "scenarios/02a-master-down.toml")
	s.Faults, s.Seeds, s.Duration = nil, 1, Span(90*time.Second)
	if misses := run(t, s, false).
		Misses(); !slices.ContainsFunc(misses,
		func(m string) bool { return strings.HasPrefix(m, "executed_by of tier 2") }) {
		t.Errorf("missed: %q", misses)
	}
}

// The same scenario and seed give the same play, whatever else the machine does.
func TestPlaysAreRepeatable(t *testing.T) {
	s := load(t, "testdata/takeover.toml")
	s.Seeds = 2
	one, other := run(t, s, true), run(t, s, true)
	for i := range one.Plays {
		a, b := one.Plays[i], other.Plays[i]
		if a.Events != b.Events || len(a.Transcript) == 0 || !slices.Equal(a.Transcript, b.Transcript) {
			t.Errorf("seed %d: %d events and %d lines, then %d and %d", a.Seed, a.Events, len(a.Transcript), b.Events,
				len(b.Transcript))
		}
	}
	if slices.Equal(one.Plays[0].Transcript, one.Plays[1].Transcript) {
		t.Error("two seeds give one play")
	}
}

// Small plays, line by line, for reading.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		s := load(t, path)
		t.Run(s.Name, func(t *testing.T) {
			r := run(t, s, true)
			if misses := r.Misses(); len(misses) > 0 {
				t.Errorf("%q", misses)
			}
			compare(t, strings.TrimSuffix(path, ".toml")+".txt", strings.Join(r.Plays[0].Transcript, "\n")+"\n")
		})
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s, line %d (go test -update rewrites it):\n  got  %s\n  want %s", path, i+1, a[i], b[i])
		}
	}
	t.Fatalf("%s has %d lines, the play %d (go test -update rewrites it)", path, len(b), len(a))
}
