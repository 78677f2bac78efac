package recordings

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

var update = flag.Bool("update", false, "rewrite testdata from the story")

// run executes a command line and returns what it printed, the one line it failed with and its exit code.
func run(t *testing.T, stdin []byte, args ...string) (stdout, complaint string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command()
	cmd.SetIn(bytes.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return out.String(), err.Error() + "\n", 1
	}
	return out.String(), "", 0
}

func mustFold(t *testing.T, stdin []byte, args ...string) (state map[string]any, text string) {
	t.Helper()
	text, complaint, code := run(t, stdin, append([]string{"fold"}, args...)...)
	if code != 0 || complaint != "" {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatal(err)
	}
	return state, text
}

// The committed recording is the story, and its fold is the committed state, byte for byte.
func TestStoryGolden(t *testing.T) {
	recording, golden := filepath.Join("testdata", "story.jsonl.gz"), filepath.Join("testdata", "story.json")
	if *update {
		if err := os.WriteFile(recording, compressed(t, tellStory()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(decompressed(t, recording), tellStory()) {
		t.Error("testdata/story.jsonl.gz is not the story; run with -update")
	}
	_, text := mustFold(t, nil, "--logs", recording)
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Error("the fold of the story is not testdata/story.json; run with -update and read the difference")
	}
}

// entity finds the one entity of an array whose fields have the given texts.
func entity(t *testing.T, state map[string]any, array string, fields ...string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, e := range state[array].([]any) {
		e := e.(map[string]any)
		matches := true
		for i := 0; i < len(fields); i += 2 {
			matches = matches && e[fields[i]] == fields[i+1]
		}
		if matches {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d of %s have %v", len(found), array, fields)
	}
	return found[0]
}

// What the story must leave, told apart from the code that folds it.
func TestStoryEnds(t *testing.T) {
	state, _ := mustFold(t, tellStory(), "--logs", "-")
	expect := func(array, key string, want map[string]string) {
		t.Helper()
		id := "key"
		if array == "positions" {
			id = "positionKey"
		}
		e := entity(t, state, array, id, key)
		for name, value := range want {
			if fmt.Sprint(e[name]) != value {
				t.Errorf("%s %s: %s is %v, want %s", array, key, name, e[name], value)
			}
		}
	}
	order := func(n uint64) string { return word("order", n).Hex() }
	req := func(n uint64) string { return word("request", n).Hex() }
	at := func(block uint64) string { return fmt.Sprint(storyStart + block) }

	expect("orders", order(1), map[string]string{"status": "Executed", "executionFee": "0", "sizeDeltaUsd": usd(900).
		String(), "changes": "3",
		"updatedAtTime": at(103), "reasonBytes": "0xe09ad0e9", "account": alice.Hex(), "orderType": "3",
		"swapPath": "[]"})
	expect("orders", order(2), map[string]string{"status": "Cancelled", "reason": "AUTO_CANCEL", "autoCancel": "true",
		"triggerPrice": "5"})
	expect("orders", order(3), map[string]string{"status": "Cancelled", "reason": "USER_INITIATED_CANCEL",
		"market": chain.Address{}.Hex()})
	expect("orders", order(4), map[string]string{"status": "Executed", "sizeDeltaUsd": usd(300).String(),
		"initialCollateralDeltaAmount": "0"})
	expect("orders", order(5), map[string]string{"status": "Executed", "orderType": "7"})
	expect("orders", order(7), map[string]string{"status": "Executed", "orderType": "4", "secondaryOrderType": "1"})

	// -1000 - ceil(-1000·300/900) = -666, closed and forgotten; 50 - floor(50·300/1000) = 35.
	expect("positions", perp.PositionKey(alice, ethMarket, usdc, true).Hex(), map[string]string{
		"status": "Active", "pendingImpactAmount": "35", "sizeInUsd": usd(700).String(), "sizeInTokens": "700",
		"collateralAmount": "70",
		"increasedAtTime":  at(108), "decreasedAtTime": at(109), "isLong": "true", "market": ethMarket.Hex(),
		"changes": "5",
	})
	debt := entity(t, state, "badDebts", "orderKey", order(5))
	if debt["account"] != alice.Hex() || debt["market"] != ethMarket.Hex() || debt["step"] != "pnl" {
		t.Errorf("bad debt %v", debt)
	}

	liquidated := entity(t, state, "settlements", "orderKey", order(5)) // LIQ-11
	if liquidated["orderType"] != "7" || liquidated["sizeDeltaUsd"] != usd(600).String() ||
		liquidated["account"] != alice.Hex() {
		t.Errorf("settlement %v", liquidated)
	}
	entity(t, state, "keeperFees") // one

	expect("deposits", req(1), map[string]string{"status": "Executed", "account": bob.Hex(), "market": ethMarket.Hex()})
	expect("withdrawals", req(2), map[string]string{"status": "Cancelled", "reason": "", "reasonBytes": "0xf7550001"})
	expect("shifts", req(3), map[string]string{"status": "Executed", "fromMarket": ethMarket.Hex(),
		"toMarket": btcMarket.Hex()})
	expect("shifts", req(4), map[string]string{"status": "Cancelled", "reason": "too\uFFFDlittle"})
	expect("glvDeposits", req(5), map[string]string{"status": "Executed", "glv": vault.Hex(),
		"isMarketTokenDeposit": "true"})
	expect("glvDeposits", req(6), map[string]string{"status": "Cancelled"})
	expect("glvWithdrawals", req(7), map[string]string{"status": "Executed"})
	expect("glvShifts", req(8), map[string]string{"status": "Executed", "updatedAtTime": at(112)})
	for array, inner := range map[string][]uint64{"deposits": {32, 51, 83}, "withdrawals": {31, 71, 82},
		"shifts": {81}} {
		for _, n := range inner {
			expect(array, req(n), map[string]string{"status": "Executed"})
		}
	}
	entity(t, state, "marketValues", "measure", "openInterest", "value", usd(900).String())
	entity(t, state, "marketValues", "measure", "fundingFactorPerSecond") // one: market 0x0 is none
	for array, want := range map[string]int{"positions": 1, "orders": 7, "deposits": 4, "withdrawals": 4, "shifts": 3,
		"glvDeposits":    2,
		"glvWithdrawals": 1, "glvShifts": 1, "markets": 2, "badDebts": 1, "oracleSources": 1, "parameters": 5} {
		if got := len(state[array].([]any)); got != want {
			t.Errorf("%d %s, want %d", got, array, want)
		}
	}
}

func compressed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decompressed(t *testing.T, file string) []byte {
	t.Helper()
	zipped, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFoldReadsPlainAndGzip(t *testing.T) {
	_, want := mustFold(t, tellStory(), "--logs", "-")
	dir := t.TempDir()
	plain, zipped, out := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "a.jsonl.gz"),
		filepath.Join(dir, "out.json")
	for name, text := range map[string][]byte{plain: tellStory(), zipped: compressed(t, tellStory())} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, got := mustFold(t, nil, "--logs", name, "--emitter", storyEmitter.Hex()); got != want {
			t.Errorf("%s folds differently", name)
		}
	}
	if _, got := mustFold(t, compressed(t, tellStory()), "--logs", "-"); got != want {
		t.Error("gzip on standard input folds differently")
	}
	if stdout, complaint, code := run(t, nil, "fold", "--logs", plain, "--out", out); code != 0 || stdout != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, complaint)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != want {
		t.Errorf("--out holds something else: %v", err)
	}
}

// Bad input gets one line that says what and where, an exit code, and leaves --out as it was.
func TestFoldRefusesBadInput(t *testing.T) {
	lines := strings.SplitAfter(string(tellStory()), "\n")
	edit := func(line int, from, to string) []byte {
		edited := slices.Clone(lines)
		if !strings.Contains(edited[line], from) {
			t.Fatalf("line %d has no %s", line, from)
		}
		edited[line] = strings.Replace(edited[line], from, to, 1)
		return []byte(strings.Join(edited, ""))
	}
	swapped := slices.Clone(lines)
	swapped[20], swapped[21] = swapped[21], swapped[20]
	unknown := &story{block: 200}
	launched := event("OrderExecuted", nil)
	launched.Topics[1] = chain.Keccak256([]byte("OrderExecutef"))
	launched.Data = bytes.Replace(launched.Data, []byte("OrderExecuted"), []byte("OrderExecutef"), 1)
	unknown.happen(launched)
	lost := slices.DeleteFunc(slices.Clone(lines),
		func(l string) bool { return strings.Contains(l, word("tx", 10801).Hex()) })
	zipped := compressed(t, tellStory())

	for name, test := range map[string]struct {
		input []byte
		file  string
		want  string
	}{
		"nothing":              {nil, "", "there is no log"},
		"broken JSON":          {edit(4, `"address"`, `"address`), "", "line 5:"},
		"something after JSON": {edit(4, "}\n", "} x\n"), "", "line 5:"},
		"a missing field":      {edit(4, `"timestamp"`, `"time"`), "", "line 5: want blockNumber"},
		"a bad address":        {edit(4, `"address":"0xE0`, `"address":"0xZZ`), "", "line 5:"},
		"a negative number":    {edit(4, `"blockNumber":100`, `"blockNumber":-1`), "", "line 5:"},
		"logs out of order":    {[]byte(strings.Join(swapped, "")), "", "logs must be in the chain's order"},
		"a log twice":          {[]byte(lines[0] + lines[0]), "", "line 2: log 0 of block 100 comes after log 0"},
		"two hashes of a block": {edit(1, word("block", 100).Hex(), word("block", 1).Hex()), "",
			"line 2: block 100 has another hash"},
		"a transaction in parts": {edit(2, word("tx", 10002).Hex(), word("tx", 10000).Hex()), "",
			"line 4: transaction 2 of block 100 is out of order"},
		"an unknown event":   {unknown.out.Bytes(), "", `unknown event "OrderExecutef"`},
		"another contract":   {edit(4, `"address":"0xE0`, `"address":"0xE1`), "", "not of the EventEmitter"},
		"a lost transaction": {[]byte(strings.Join(lost, "")), "", "a log is missing"},
		"gzip cut short":     {zipped[:len(zipped)/2], "", "unexpected EOF"},
		"gzip damaged":       {append(slices.Clone(zipped[:len(zipped)-6]), 1, 2, 3, 4, 5, 6), "", "checksum"},
		"no gzip at all":     {[]byte(lines[0]), "log.gz", "is no gzip file"},
		"an empty gzip":      {nil, "log.gz", "is no gzip file"},
		"no such file":       {nil, "none/such.jsonl", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out, logs := filepath.Join(dir, "out.json"), "-"
			if test.file != "" {
				logs = filepath.Join(dir, test.file)
				if !strings.Contains(test.file, "/") {
					os.WriteFile(logs, test.input, 0o600)
				}
			}
			if err := os.WriteFile(out, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			stdout, complaint, code := run(t, test.input, "fold", "--logs", logs, "--out", out)
			if code != 1 || stdout != "" || !strings.Contains(complaint, test.want) ||
				strings.Count(complaint, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, complaint %q, want %q", code, stdout, complaint, test.want)
			}
			if kept, _ := os.ReadFile(out); string(kept) != "before" {
				t.Errorf("--out was changed: %d bytes", len(kept))
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 2 {
				t.Errorf("left over: %v", entries)
			}
		})
	}
}

// Which version a handler is of is told by a file, and what is wrong with the file is said.
func TestRulesOfAFile(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "rules.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	handler := chain.Address{0xc}
	r, err := readRules(write(`{"default": "v2.2b", "handlers": {"` + handler.Hex() + `": "v2.2c"}}`))
	if err != nil {
		t.Fatal(err)
	}
	book := perp.NewBook()
	speak := func(who chain.Address) perp.Version {
		log := gmxtest.Log(who, "Funding", []chain.Hash{{1}}, nil)
		if err := r.before(book, []chain.Log{log}, 1000); err != nil {
			t.Fatal(err)
		}
		return perp.Version(book.Get(perp.HandlerVersion(chain.Address{}, 0).RowKey()).(perp.Parameter).Value[31])
	}
	for _, step := range []struct {
		handler chain.Address
		want    perp.Version
	}{{chain.Address{0xb}, perp.V22b}, {handler, perp.V22c}, {chain.Address{0xb}, perp.V22c},
		{chain.Address{0xa}, perp.V22c}} {
		if got := speak(step.handler); got != step.want {
			t.Errorf("after %s spoke the version in force is %s, want %s", step.handler, got, step.want)
		}
	}
	for _, bad := range []string{`{`, `{"default": "v3"}`, `{"handlers": {"0x1": "v2.2c"}}`,
		`{"handlers": {"` + handler.Hex() + `": "v2.2"}}`} {
		_, complaint, code := run(t, tellStory(), "fold", "--logs", "-", "--rules", write(bad))
		if code != 1 || !strings.Contains(complaint, "--rules") {
			t.Errorf("%s: exit code %d, %q", bad, code, complaint)
		}
	}
}
