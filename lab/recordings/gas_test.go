package recordings

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
)

// The limits of the model against the smallest with which the original contracts executed, not cancelled or froze:
// never below, at most half as much again, and mostly within a quarter.
func TestGasOfTheOriginalContracts(t *testing.T) {
	file := filepath.Join(fixtureDir(), "gas-cases.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("no measurements %s; set GMX_FIXTURES to its directory", file)
	}
	var measured struct {
		Cases []struct {
			ID             int
			Kind, Note     string
			MinGasExecuted uint64
		}
	}
	if err := json.Unmarshal(text, &measured); err != nil {
		t.Fatal(err)
	}
	limits := limitsOf(t, file)
	if len(limits) != len(measured.Cases) || len(limits) == 0 {
		t.Fatalf("%d limits of %d cases", len(limits), len(measured.Cases))
	}
	var shares []float64
	for n, c := range measured.Cases {
		share := float64(limits[n].Limit) / float64(c.MinGasExecuted)
		shares = append(shares, share)
		const closest, widest = 1.03, 1.5
		if share < closest || share > widest {
			t.Errorf("case %d, %s %s: %d is %.3f of the %d it takes", c.ID, c.Kind, c.Note, limits[n].Limit, share,
				c.MinGasExecuted)
		}
	}
	slices.Sort(shares)
	if middle := shares[len(shares)/2]; middle > 1.2 {
		t.Errorf("the median is %.3f", middle)
	}
}

func limitsOf(t *testing.T, file string) (limits []gasLimit) {
	t.Helper()
	text, complaint, code := run(t, nil, "gas", "--cases", file)
	if code != 0 || complaint != "" {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	if err := json.Unmarshal([]byte(text), &limits); err != nil {
		t.Fatal(err)
	}
	return limits
}

func gasFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What was measured of a case is not read; its own words and parameters are.
func TestGasReadsParametersAlone(t *testing.T) {
	limits := limitsOf(t, gasFile(t,
		`{"words": {"a": {}, "b": {"SHIFT_GAS_LIMIT": 9000000}, "c": {"SHIFT_GAS_LIMIT": "9000000", "NEW_WORD": true}}, "cases": [
		{"words": "a", "kind": "decrease", "oraclePrices": 2, "minGasExecuted": 1,
			"autoCancelled": 6, "gasUsedWithPlenty": 9},
		{"words": "a", "kind": "decrease", "oraclePrices": 2},
		{"words": "a", "kind": "decrease", "oraclePrices": 2, "note": "whole position, 6 auto-cancel orders"},
		{"words": "a", "kind": "decrease", "oraclePrices": 2, "autoCancelOrders": 6},
		{"words": "a", "kind": "shift", "oraclePrices": 3}, {"words": "b", "kind": "shift", "oraclePrices": 3},
		{"words": "c", "kind": "shift", "oraclePrices": 3},
		{"words": "a", "kind": "liquidation", "savedCallback": "none"},
		{"words": "a", "kind": "liquidation", "savedCallback": "burns all of it"}
	]}`))
	if limits[0] != limits[1] || limits[2] == limits[1] || limits[2] != limits[3] {
		t.Errorf("orders that end with a position: %v", limits[:4])
	}
	if limits[5].Limit < limits[4].Limit+2_000_000 || limits[5] != limits[6] {
		t.Errorf("another word: %v", limits[4:7])
	}
	if limits[8].Limit < limits[7].Limit+2_000_000 {
		t.Errorf("a saved callback: %v", limits[7:])
	}
}

func TestGasCasesThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                "is no JSON object with words and cases",
		`{"words": {"a": {}}, "cases": []}`: "there are no cases in it",
		`{"words": {}, "cases": [{"words": "a", "kind": "shift"}]}`:                                                         `case 1: there is no set of words "a"`,
		`{"words": {"a": {}}, "cases": [{"words": "a", "kind": "shift"}, {"words": "a", "kind": "theft"}]}`:                 `case 2: there is no kind "theft"`,
		`{"words": {"a": {"SHIFT_GAS_LIMIT": 1.5}}, "cases": [{"words": "a", "kind": "shift"}]}`:                            "SHIFT_GAS_LIMIT is 1.5",
		`{"words": {"a": {}}, "cases": [{"words": "a", "kind": "shift", "oraclePrices": -1}]}`:                              "counts less than nothing",
		`{"words": {"a": {}}, "cases": [{"words": "a", "kind": "adl", "autoCancelOrders": 999999999}]}`:                     "more than there can be",
		`{"words": {"a": {}}, "cases": [{"words": "a", "kind": "adl", "note": "99999999999999999999 auto-cancel orders"}]}`: "less than nothing",
	} {
		out, complaint, code := run(t, nil, "gas", "--cases", gasFile(t, text))
		if code != 1 || out != "" || !strings.Contains(complaint, want) || strings.Count(complaint, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, complaint %q", text, code, out, complaint)
		}
	}
	if _, complaint, code := run(t, nil, "gas"); code != 1 || !strings.Contains(complaint, "cases") {
		t.Errorf("exit code %d, %q", code, complaint)
	}
}

// Every kind of job can be a case, without being listed for it.
func TestGasCasesOfEveryKind(t *testing.T) {
	works := slices.Collect(maps.Values(gasKinds))
	for _, kind := range job.Kinds() {
		if !slices.ContainsFunc(works, func(w gmx.Work) bool { return w.Kind == kind }) {
			t.Errorf("%s: no case of gasKinds (lab/recordings/gas.go) is of this kind", kind)
		}
	}
}
