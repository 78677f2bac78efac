package recordings

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// expectedCases reads the verdicts of the original contracts beside a recording, or skips where they are not at hand.
func expectedCases(t *testing.T, name string) (file string, cases []map[string]any) {
	t.Helper()
	file = filepath.Join(fixtureDir(), name+".expected.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("no verdicts %s; set GMX_FIXTURES to its directory", file)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return file, cases
}

func verdictsOf(t *testing.T, args ...string) (verdicts []map[string]any) {
	t.Helper()
	text, complaint, code := run(t, nil, append([]string{"fold"}, args...)...)
	if code != 0 || complaint != "" {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	if err := json.Unmarshal([]byte(text), &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// LIQ-5: from the logs alone, the verdicts of the original contracts to the wei.
func TestVerdictsOfTheOriginalContracts(t *testing.T) {
	for name, want := range map[string]int{"risk-parity": 48, "toggles": 40, "twoside": 624, "solvent": 19,
		"upgrade": 142} {
		t.Run(name, func(t *testing.T) {
			file, cases := expectedCases(t, name)
			verdicts := verdictsOf(t, append(foldArgs(name), "--cases", file)...)
			if len(cases) != want || len(verdicts) != want {
				t.Fatalf("%d verdicts on %d cases, want %d", len(verdicts), len(cases), want)
			}
			for n, c := range cases {
				said := c["chain"].(map[string]any)
				for _, field := range []string{"liquidatable", "remainingCollateralUsd", "minCollateralUsd",
					"minCollateralUsdForLeverage"} {
					if value, told := said[field]; told && value != verdicts[n][field] {
						t.Errorf("case %d, position %v: %s is %v, the chain says %v", n+1, c["positionKey"], field,
							verdicts[n][field], value)
					}
				}
			}
		})
	}
}

// The order of the cases is theirs, not the chain's, and they need neither parts nor a key when the other is there.
func TestCasesInAnyOrder(t *testing.T) {
	file, cases := expectedCases(t, "toggles")
	logs := filepath.Join(fixtureDir(), "toggles.jsonl.gz")
	want := verdictsOf(t, "--logs", logs, "--cases", file)
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(cases))
	shuffled := make([]map[string]any, len(cases))
	for to, from := range order {
		shuffled[to] = cases[from]
		delete(shuffled[to], "chain")
		if to%2 == 0 {
			delete(shuffled[to], "positionKey")
			shuffled[to]["asOfBlock"] = 486 + to
		} else {
			delete(shuffled[to], "account")
			delete(shuffled[to], "isLong")
		}
	}
	text, err := json.Marshal(shuffled)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "cases.json")
	if err := os.WriteFile(other, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for to, verdict := range verdictsOf(t, "--cases", other, "--logs", logs) {
		if verdict["remainingCollateralUsd"] != want[order[to]]["remainingCollateralUsd"] {
			t.Errorf("case %d: %v, want %v", to+1, verdict, want[order[to]])
		}
	}
}

// A case of the past is judged on what was known then: as if the recording had ended with its block or, without one,
// with its time.
func TestCasesOfThePast(t *testing.T) {
	_, cases := expectedCases(t, "toggles")
	recording := strings.SplitAfter(string(decompressed(t, filepath.Join(fixtureDir(), "toggles.jsonl.gz"))), "\n")
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// A case at each of the times, between two of the present.
	ask := func(name string, times ...map[string]any) string {
		asked := []any{cases[1]}
		for _, at := range times {
			c := maps.Clone(cases[0])
			delete(c, "blockTimestamp")
			maps.Copy(c, at)
			asked = append(asked, c)
		}
		text, err := json.Marshal(append(asked, cases[2]))
		if err != nil {
			t.Fatal(err)
		}
		return write(name, string(text))
	}
	type head struct{ BlockNumber, Timestamp uint64 }
	heads := make([]head, len(recording))
	for n, line := range recording {
		if err := json.Unmarshal([]byte(line), &heads[n]); err != nil && line != "" {
			t.Fatal(err)
		}
	}
	cut := func(beyond func(head) bool, at map[string]any) string {
		logs := write("cut.jsonl", strings.Join(recording[:slices.IndexFunc(heads, beyond)], ""))
		return verdictsOf(t, "--logs", logs, "--cases", ask("cases.json", at))[1]["remainingCollateralUsd"].(string)
	}
	var times []map[string]any
	var wanted []string
	seen := map[string]bool{}
	for n := 510; n < len(recording)-50; n += 60 { // the three positions are open from there on
		last := heads[n]
		wanted = append(wanted, cut(func(h head) bool { return h.BlockNumber > last.BlockNumber }, nil))
		times = append(times, map[string]any{"asOfBlock": last.BlockNumber})
		seen[wanted[len(wanted)-1]] = true
		at := map[string]any{"blockTimestamp": last.Timestamp}
		wanted = append(wanted, cut(func(h head) bool { return h.Timestamp > last.Timestamp }, at))
		times = append(times, at)
	}
	whole := write("whole.jsonl", strings.Join(recording, ""))
	for i, verdict := range verdictsOf(t, "--logs", whole, "--cases", ask("all.json", times...))[1 : len(times)+1] {
		if got := verdict["remainingCollateralUsd"]; got != wanted[i] {
			t.Errorf("at %v: %v, want %s", times[i], got, wanted[i])
		}
	}
	if len(seen) < 3 {
		t.Errorf("the past was the same everywhere: %v", seen)
	}
}

// fundings folds a recording and calls back at each Funding event of a market, before it is applied.
func fundings(t *testing.T, name string, at func(*perp.Book, perp.MarketValue)) {
	t.Helper()
	r, file, err := openRecording(filepath.Join(fixtureDir(), name+".jsonl.gz"), nil)
	if err != nil {
		t.Skipf("no recording: %v", err)
	}
	defer file.Close()
	f := fold{book: perp.NewBook(), oracle: map[chain.Address]perp.Price{}}
	if f.rules, err = readRules(""); err != nil {
		t.Fatal(err)
	}
	for {
		logs, timeMs, err := r.transaction()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		events, err := gmx.NewDecoder(logs[0].Address).Transaction(logs, timeMs)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.rules.before(f.book, logs, timeMs); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if v, is := e.(perp.MarketValued); is && v.Values[0].Measure == perp.FundingFactorPerSecond &&
				!v.Values[0].Scope.IsZero() {
				at(f.book, v.Values[0])
			}
			if err := perp.Apply(f.book, e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// overlay is a state over another that is not to be changed.
type overlay struct {
	*perp.Book
	put map[perp.RowKey]perp.Row
}

func (o overlay) Get(k perp.RowKey) perp.Row {
	if r, is := o.put[k]; is {
		return r
	}
	return o.Book.Get(k)
}

func (o overlay) Put(r perp.Row) { o.put[r.RowKey()] = r }

// The factor that no event carries is folded without a look at what the event shows, and then shows the same: its
// magnitude within the market's bounds.
func TestFoldedFundingShowsWhatTheEventsShow(t *testing.T) {
	adaptive, belowMinimum := 0, 0
	for _, name := range fixtureNames {
		fundings(t, name, func(book *perp.Book, v perp.MarketValue) {
			word := func(name string) chain.Uint {
				key := perp.RowKey{Table: perp.Parameters, Key: perp.DataStoreKey(name, v.Scope)}
				p, _ := book.Get(key).(perp.Parameter)
				return p.Uint()
			}
			blind := v
			blind.Value = chain.Int{}
			o := overlay{book, map[perp.RowKey]perp.Row{}}
			if err := perp.Apply(o, perp.MarketValued{Values: []perp.MarketValue{blind}}); err != nil {
				t.Fatal(err)
			}
			saved := o.put[perp.MarketValueKey(perp.SavedFundingFactorPerSecond, v.Scope, chain.Address{},
				false)].(perp.MarketValue)
			if word("FUNDING_INCREASE_FACTOR_PER_SECOND").IsZero() || v.Value.Sign() == 0 {
				if saved.Value.Sign() != 0 {
					t.Errorf("%s, block %d: %s is saved of funding that does not adapt", name, v.Stamp.Block,
						saved.Value)
				}
				return
			}
			adaptive++
			least, most := word("MIN_FUNDING_FACTOR_PER_SECOND"), word("MAX_FUNDING_FACTOR_PER_SECOND")
			if !least.Less(v.Value.Uint()) {
				belowMinimum++
			}
			if got := saved.Value.Abs().Max(least).Min(most); got != v.Value.Uint() {
				t.Errorf("%s, block %d: saved %s shows as %s, the event says %s", name, v.Stamp.Block, saved.Value, got,
					v.Value)
			}
		})
	}
	t.Logf("%d events of adaptive funding, %d at the minimum", adaptive, belowMinimum)
	if adaptive < 6 {
		t.Errorf("only %d events of adaptive funding were compared", adaptive)
	}
}

// A JSON number is read to the digits a double keeps, a text to the last digit.
func TestCasePrices(t *testing.T) {
	for text, want := range map[string]string{
		`4599.54`: "4599540000000000", `5199.4800000000005`: "5199480000000000", `"5199.4800000000005"`: "",
		`1e-05`: "10000000", `"1E3"`: "1000000000000000",
		`0.1`: "100000000000", `"0.000000000001"`: "1", `"0.0000000000001"`: "",
		`52005199999999995e-13`: "5200520000000000",
		`0`:                     "", `-1`: "", `"1e200"`: "", `""`: "",
		`"1.2.3"`: "", `true`: "", `5`: "5000000000000",
	} {
		var d decimal
		err := json.Unmarshal([]byte(text), &d)
		var got chain.Uint
		if err == nil {
			got, err = d.perUnit(18)
		}
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%s: got %s, %v; want %q", text, got, err, want)
		}
	}
}
