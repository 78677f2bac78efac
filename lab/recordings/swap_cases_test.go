package recordings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// swapRecording is the files of the swaps that the original contracts were asked for, or skips where they are not at
// hand.
func swapRecording(t *testing.T) (logs, words, cases string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(fixtureDir(), name) }
	logs, words, cases = at("swaps.jsonl.gz"), at("swaps.words.json"), at("swaps.expected.json")
	for _, file := range []string{logs, words, cases} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("no recording %s; set GMX_FIXTURES to its directory", file)
		}
	}
	return logs, words, cases
}

// venueError is what the recording says of a swap that was refused: an error, or a text that ends in one where not even
// the request could be made.
type venueError struct{ Name string }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *venueError) UnmarshalJSON(text []byte) error {
	type plain venueError
	var quoted string
	if json.Unmarshal(text, &quoted) == nil {
		_, cause, _ := strings.Cut(quoted, "{")
		text = []byte("{" + cause)
	}
	return json.Unmarshal(text, (*plain)(e))
}

// Every swap that the original contracts were asked for comes out as they executed it, hop by hop and to the last unit,
// or is refused by the same name.
func TestSwapsOfTheOriginalContracts(t *testing.T) {
	logs, words, cases := swapRecording(t)
	for name, args := range map[string][]string{
		cases: {"--logs", logs, "--words", words},
		filepath.Join(fixtureDir(), "twoside.swaps.expected.json"): foldArgs("twoside"),
	} {
		t.Run(filepath.Base(name), func(t *testing.T) { testSwaps(t, name, args) })
	}
}

func testSwaps(t *testing.T, cases string, args []string) {
	text, err := os.ReadFile(cases)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Cases []struct {
			Note     string
			Executed struct {
				Status    string
				AmountOut string
				Hops      []struct{ AmountOut, PriceImpactAmount string }
				Error     venueError
			}
		}
	}
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	out, complaint, code := run(t, nil, append([]string{"fold", "--swap-cases", cases}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	var answers []struct {
		AmountOut string
		Hops      []struct{ AmountOut, PriceImpactAmount string }
		Revert    string
	}
	if err := json.Unmarshal([]byte(out), &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(said.Cases) || len(answers) == 0 {
		t.Fatalf("%d answers to %d cases", len(answers), len(said.Cases))
	}
	for n, c := range said.Cases {
		want, got := c.Executed, answers[n]
		if got.Revert != want.Error.Name || got.AmountOut != want.AmountOut || len(got.Hops) != len(want.Hops) {
			t.Errorf("case %d (%s): %+v, the chain says %+v", n+1, c.Note, got, want)
			continue
		}
		for i, hop := range want.Hops {
			if got.Hops[i] != hop {
				t.Errorf("case %d (%s), hop %d: %+v, the chain says %+v", n+1, c.Note, i+1, got.Hops[i], hop)
			}
		}
	}
}

func TestWordsOfAFile(t *testing.T) {
	story := filepath.Join("testdata", "story.jsonl.gz")
	key := "0x" + strings.Repeat("ab", 32)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "words.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	word := strings.Repeat("0", 62)
	for value, want := range map[string]string{
		`"255"`: "0x" + word + "ff", `255`: "0x" + word + "ff", `true`: "0x" + word + "01",
		`"-1"`:                                   "0x" + strings.Repeat("f", 64),
		`"0x` + strings.Repeat("00", 19) + `0c"`: "0x" + word + "0c", `"` + key + `"`: key,
	} {
		state, _ := mustFold(t, nil, "--logs", story, "--words",
			file(`[{"block":1,"key":"`+key+`","value":`+value+`}]`))
		if got := entity(t, state, "parameters", "key", key)["value"]; got != want {
			t.Errorf("%s is %v, want %s", value, got, want)
		}
	}
	for text, want := range map[string]string{
		`{}`:                                        "no JSON array of words",
		`[{"block":1,"value":"1"}]`:                 "word 1: it has no key",
		`[{"block":1,"key":"` + key + `"}]`:         "word 1",
		`[{"key":"` + key + `","value":"0xzz"}]`:    "word 1",
		`[{"key":"` + key + `","value":"several"}]`: "word 1",
	} {
		if _, complaint, code := run(t, nil, "fold", "--logs", story, "--words", file(text)); code == 0 ||
			!strings.Contains(complaint, want) {
			t.Errorf("%s: exit code %d, %q", text, code, complaint)
		}
	}
	if _, complaint, code := run(t, nil, "fold", "--logs", story, "--cases", "a", "--swap-cases", "b"); code != 1 {
		t.Errorf("two kinds of cases: exit code %d, %q", code, complaint)
	}
}

// Prices may be by symbol, and cases a plain array.
func TestSwapCasesBySymbol(t *testing.T) {
	logs, words, cases := swapRecording(t)
	text, err := os.ReadFile(cases)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	all := whole["cases"].([]any)
	for _, c := range all {
		delete(c.(map[string]any), "rawPrices")
	}
	short, err := json.Marshal(map[string]any{"cases": all[:5], "tokens": whole["tokens"]})
	if err != nil {
		t.Fatal(err)
	}
	array, err := json.Marshal(all[:5])
	if err != nil {
		t.Fatal(err)
	}
	answer := func(text []byte, args ...string) (string, int) {
		name := filepath.Join(t.TempDir(), "cases.json")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, code := run(t, nil, append([]string{"fold", "--logs", logs, "--words", words, "--swap-cases", name},
			args...)...)
		return out, code
	}
	want, _, _ := run(t, nil, "fold", "--logs", logs, "--words", words, "--swap-cases", cases)
	bySymbol, code := answer(short)
	if code != 0 || !strings.HasPrefix(want, strings.TrimSuffix(bySymbol, "\n]\n")) {
		t.Errorf("exit code %d: %s", code, bySymbol)
	}
	if _, code := answer(array); code != 1 {
		t.Errorf("symbols that nobody explains: exit code %d", code)
	}
	var tokens []string
	for symbol, token := range whole["tokens"].(map[string]any) {
		fields := token.(map[string]any)
		decimals, err := json.Marshal(fields["decimals"])
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, symbol+"="+fields["address"].(string)+":"+string(decimals))
	}
	if named, code := answer(array, "--tokens", strings.Join(tokens, ",")); code != 0 || named != bySymbol {
		t.Errorf("exit code %d: %s", code, named)
	}
}
