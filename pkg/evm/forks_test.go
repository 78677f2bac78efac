package evm

import (
	"strings"
	"testing"
	"time"
)

// jenner is the fork as it is shipped.
func jenner(t *testing.T) Fork {
	t.Helper()
	forks, err := forksOf(56, nil)
	if err != nil || len(forks) != 1 {
		t.Fatalf("%v, %v", forks, err)
	}
	return forks[0]
}

// Whether a node's software knows a fork is told by its own words, whatever else stands in them; of software that is
// not in the table, or of a version that cannot be read, nothing is said.
func TestReadiness(t *testing.T) {
	fork := jenner(t)
	if fork.At.Unix() != 1796697000 {
		t.Errorf("the fork is at %d", fork.At.Unix())
	}
	for software, want := range map[string]Readiness{
		"Geth/v1.8.2-0a1b2c3d/linux-amd64/go1.25.1":             Ready,
		"Geth/v1.8.2/linux-amd64/go1.25.1":                      Ready,
		"Geth/v1.8.10-stable-0a1b2c3d/linux-amd64/go1.25":       Ready,
		"Geth/v1.10.0/linux-arm64/go1.26":                       Ready,
		"Geth/v2.0/linux-amd64/go1.26":                          Ready,
		"bsc/v1.8.3-dev/linux-amd64/go1.25":                     Ready,
		"Geth/some-provider/v1.8.2-0a1b2c3d/linux-amd64/go1.25": Ready,
		"geth/V1.8.2-STABLE/linux":                              Ready,
		"reth-bsc/v0.1.1-0a1b2c3/x86_64-unknown-linux-gnu":      Ready,
		"reth_bsc/0.2.0/x86_64":                                 Ready,
		"bsc-reth/v1.0.0":                                       Ready,
		"Geth/v1.8.1-0a1b2c3d/linux-amd64/go1.25.1":             Outdated,
		"Geth/v1.7.10-stable/linux-amd64/go1.25":                Outdated,
		"Geth/v1.8-unstable/linux":                              Outdated,
		"Geth/v1.8.2-alpha/linux-amd64/go1.25":                  Outdated,
		"Geth/v1.8.2-rc.1-0a1b2c3d/linux-amd64/go1.25":          Outdated,
		"Geth/rpc-7/v1.7.3-0a1b2c3d/linux-amd64/go1.25":         Outdated,
		"reth-bsc/v0.0.9/x86_64-unknown-linux-gnu":              Outdated,
		"reth/v1.9.3-0a1b2c3/x86_64-unknown-linux-gnu":          ReadinessUnknown, // of another numbering
		"erigon/2.60.8/linux-amd64/go1.21.5":                    ReadinessUnknown,
		"Nethermind/v1.31.0+abc/linux-x64/dotnet9":              ReadinessUnknown,
		"Geth":                                 ReadinessUnknown,
		"Geth/linux-amd64/go1.25":              ReadinessUnknown,
		"Geth/v1/linux":                        ReadinessUnknown,
		"Geth/v1..2/linux":                     ReadinessUnknown,
		"Geth/v99999999999999999999.1.1/linux": ReadinessUnknown,
		"":                                     ReadinessUnknown,
		"///":                                  ReadinessUnknown,
		"a proxy of ours":                      ReadinessUnknown,
		"v1.8.2":                               ReadinessUnknown,
		strings.Repeat("Geth/", 10_000) + "v1.8.2":                   Ready,
		"Geth/" + strings.Repeat("1.", 5000) + "/v1.8.1-x/linux-amd": Outdated,
	} {
		if got := fork.Readiness(software); got != want {
			t.Errorf("%.80q: %d, want %d", software, got, want)
		}
	}
}

// A fork is spoken of from a fortnight before, and stays so: which come, and which is named of several.
func TestMissing(t *testing.T) {
	jenner := jenner(t)
	later := Fork{Name: "Later", At: jenner.At.Add(24 * time.Hour), Least: map[string]Version{"bsc": {1, 9, 0}}}
	const old, ready, next = "Geth/v1.8.1/linux", "Geth/v1.8.2/linux", "Geth/v1.9.0/linux"
	for _, c := range []struct {
		software string
		before   time.Duration // the first fork
		named    string
		come     bool
	}{
		{old, 15 * 24 * time.Hour, "", false}, {old, 14 * 24 * time.Hour, "Jenner", false},
		{old, time.Second, "Jenner", false}, {old, 0, "Jenner", true}, {old, -48 * time.Hour, "Later", true},
		{ready, time.Hour, "Later", false}, {ready, -48 * time.Hour, "Later", true}, {next, -48 * time.Hour, "", false},
		{"erigon/2.60.8/linux", time.Hour, "", false}, {"", -48 * time.Hour, "", false},
	} {
		now := jenner.At.Add(-c.before)
		f, is := missing([]Fork{jenner, later}, c.software, now)
		if f.Name != c.named || is != (c.named != "") || is && !now.Before(f.At) != c.come {
			t.Errorf("%s, %s before: %q of %s", c.software, c.before, f.Name, f.At)
		}
	}
	want := `its software, "Geth/v1.8.1/linux", does not know the fork Jenner of 2026-12-08 02:30 UTC ` +
		`(needed: bsc v1.8.2, reth-bsc v0.1.1 or later)`
	if said := jenner.Misses(old); said != want {
		t.Errorf("said: %s", said)
	}
}

// What cannot be read of chain.forks is refused, with what it should be.
func TestForksAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "a name, a time",
		"Next 1800000000":                   "a name, a time",
		"Next tomorrow bsc>=1.9.0":          "is no time",
		"Next 1800000000 bsc":               "software>=version",
		"Next 1800000000 bsc>=new":          "software>=version",
		"Next 1800000000 >=1.9.0":           "software>=version",
		"Next 2027-01-05T00:00:00Z bsc>=1.": "software>=version",
	} {
		cfg := DefaultConfig()
		cfg.Forks = []string{text}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "forks: number 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
	forks, err := forksOf(1, []string{"Next 1800000000 bsc>=1.9 other>=v2.0.1"})
	if err != nil || len(forks) != 1 || forks[0].At.Unix() != 1800000000 ||
		forks[0].Least["bsc"] != (Version{1, 9, 0}) || forks[0].Least["other"] != (Version{2, 0, 1}) {
		t.Errorf("%+v, %v", forks, err)
	}
	for _, id := range []uint64{56, 97} {
		if forks, err := forksOf(id, nil); err != nil || len(forks) == 0 {
			t.Errorf("chain %d: %v, %v", id, forks, err)
		}
	}
	if forks, err := forksOf(1337, nil); err != nil || len(forks) != 0 {
		t.Errorf("another chain: %v, %v", forks, err)
	}
}
