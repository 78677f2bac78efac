package recordings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// folded is what fixture has folded before.
var folded = map[string]map[string]any{}

// fixture folds a recording of the original contracts, or skips where the recordings are not at hand. GMX_FIXTURES
// overrides where to look. Tests read the state and do not change it.
func fixture(t *testing.T, name string) map[string]any {
	t.Helper()
	file := filepath.Join(fixtureDir(), name+".jsonl.gz")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("no recording %s; set GMX_FIXTURES to its directory", file)
	}
	if folded[name] == nil {
		folded[name], _ = mustFold(t, nil, foldArgs(name)...)
	}
	return folded[name]
}

func fixtureDir() string {
	if dir := os.Getenv("GMX_FIXTURES"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "fixtures", "gmx")
}

// foldArgs folds a recording by the rules that stand beside it.
func foldArgs(name string) []string {
	args := []string{"--logs", filepath.Join(fixtureDir(), name+".jsonl.gz")}
	if rules := filepath.Join(fixtureDir(), name+".rules.json"); exists(rules) {
		args = append(args, "--rules", rules)
	}
	return args
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

var fixtureNames = []string{"trading-and-liquidation", "risk-parity", "toggles"}

func entities(state map[string]any, array string) (es []map[string]any) {
	for _, e := range state[array].([]any) {
		es = append(es, e.(map[string]any))
	}
	return es
}

// side is what the exchange keeps a total of: a market, a collateral and a direction.
type side struct {
	market, collateral string
	isLong             bool
}

func signed(t *testing.T, v any) chain.Int {
	t.Helper()
	n, err := chain.ParseInt(v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The exchange reports totals over positions in events of their own; the folded positions must add up to them.
func TestPositionsAddUpToTheMarketsTotals(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			state := fixture(t, name)
			sums := map[string]map[side]chain.Int{}
			add := func(measure string, s side, v chain.Int) {
				if sums[measure] == nil {
					sums[measure] = map[side]chain.Int{}
				}
				sums[measure][s] = sums[measure][s].Add(v)
			}
			for _, p := range entities(state, "positions") {
				s := side{p["market"].(string), p["collateralToken"].(string), p["isLong"].(bool)}
				add("openInterest", s, signed(t, p["sizeInUsd"]))
				add("openInterestInTokens", s, signed(t, p["sizeInTokens"]))
				add("collateralSum", s, signed(t, p["collateralAmount"]))
				add("totalPendingImpactAmount", side{market: s.market, collateral: chain.Address{}.Hex()},
					signed(t, p["pendingImpactAmount"]))
			}
			checked := 0
			for _, v := range entities(state, "marketValues") {
				totals, isTotal := sums[v["measure"].(string)]
				if !isTotal {
					continue
				}
				scope, err := chain.ParseHash(v["scope"].(string))
				if err != nil {
					t.Fatal(err)
				}
				s := side{scope.Address().Hex(), v["token"].(string), v["isLong"].(bool)}
				if got, want := totals[s], signed(t, v["value"]); got != want {
					t.Errorf("%s of %+v: positions add up to %s, the exchange says %s", v["measure"], s, got, want)
				}
				delete(totals, s)
				checked++
			}
			for measure, left := range sums {
				for s := range left {
					t.Errorf("the exchange reported no %s of %+v", measure, s)
				}
			}
			if checked < 7 {
				t.Errorf("only %d totals were compared", checked)
			}
		})
	}
}

// Every position key is the hash of its parts, every position's times are its blocks', and nothing of a closed one is
// left.
func TestFoldedPositionsAreCoherent(t *testing.T) {
	for _, name := range fixtureNames {
		t.Run(name, func(t *testing.T) {
			for _, e := range entities(fixture(t, name), "positions") {
				text, _ := json.Marshal(e)
				var p struct {
					PositionKey                      chain.Hash
					Account, Market, CollateralToken chain.Address
					IsLong                           bool
					Status                           perp.PositionStatus
					SizeInUsd, SizeInTokens          chain.Uint
					CollateralAmount                 chain.Uint
					PendingImpactAmount              chain.Int
					IncreasedAtTime, DecreasedAtTime chain.Uint
					Stamp                            struct{ TimeMs string }
				}
				if err := json.Unmarshal(text, &p); err != nil {
					t.Fatal(err)
				}
				if p.PositionKey != perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong) {
					t.Errorf("key of %s", text)
				}
				if last := p.IncreasedAtTime.Max(p.DecreasedAtTime); last.String()+"000" != p.Stamp.TimeMs {
					t.Errorf("times of %s", text)
				}
				rest := !p.SizeInUsd.IsZero() || !p.SizeInTokens.IsZero() || !p.CollateralAmount.IsZero() ||
					p.PendingImpactAmount.Sign() != 0
				if (p.Status == perp.Active) != rest {
					t.Errorf("status of %s", text)
				}
			}
		})
	}
}

// What the recordings are known to hold, counted from their raw lines by other means.
func TestFixtureCounts(t *testing.T) {
	for name, want := range map[string]struct{ active, closed, orders, deposits, badDebts, markets int }{
		"trading-and-liquidation": {0, 2, 4, 2, 1, 9},
		"risk-parity":             {6, 0, 9, 2, 0, 9},
		"toggles":                 {8, 0, 15, 3, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			state := fixture(t, name)
			for array, n := range map[string]int{"orders": want.orders, "deposits": want.deposits,
				"badDebts": want.badDebts, "markets": want.markets,
				"withdrawals": 0, "shifts": 0, "glvDeposits": 0, "glvWithdrawals": 0, "glvShifts": 0} {
				if got := len(entities(state, array)); got != n {
					t.Errorf("%d %s, want %d", got, array, n)
				}
			}
			for _, array := range []string{"orders", "deposits"} {
				for _, e := range entities(state, array) {
					if e["status"] != "Executed" {
						t.Errorf("%s %v is %v; the recording has no other end than execution", array, e["key"],
							e["status"])
					}
				}
			}
			count := map[any]int{}
			for _, p := range entities(state, "positions") {
				count[p["status"]]++
			}
			if count["Active"] != want.active || count["Closed"] != want.closed {
				t.Errorf("positions by status: %v", count)
			}
		})
	}
}

// Each position the chain gave a verdict on is there, open, and of the same account, market and side.
func TestJudgedPositionsAreOpen(t *testing.T) {
	for _, name := range fixtureNames[1:] {
		t.Run(name, func(t *testing.T) {
			state := fixture(t, name)
			text, err := os.ReadFile(filepath.Join(fixtureDir(), name+".expected.json"))
			if err != nil {
				t.Skip("no verdicts beside the recording")
			}
			var cases []map[string]any
			if err := json.Unmarshal(text, &cases); err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				p := entity(t, state, "positions", "positionKey", c["positionKey"].(string))
				for _, field := range []string{"account", "market", "collateralToken"} {
					if want := c[field].(string); p[field] != want {
						t.Errorf("%s: %s is %v, want %s", c["positionKey"], field, p[field], want)
					}
				}
				if p["status"] != "Active" || p["isLong"] != c["isLong"] {
					t.Errorf("%s is %v, long %v", c["positionKey"], p["status"], p["isLong"])
				}
			}
		})
	}
}
