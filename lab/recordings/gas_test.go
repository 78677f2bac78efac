package recordings

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// Every kind of job can be a case, without being listed for it.
func TestGasCasesOfEveryKind(t *testing.T) {
	works := slices.Collect(maps.Values(gasKinds))
	for _, kind := range job.Kinds() {
		if !slices.ContainsFunc(works, func(w gmx.Work) bool { return w.Kind == kind }) {
			t.Errorf("%s: no case of gasKinds (lab/recordings/gas.go) is of this kind", kind)
		}
	}
}
