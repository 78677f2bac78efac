package ledger

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

// Signers of three keepers, of somebody who is a keeper and not in the roster, and of a trader.
var (
	master, backup, third = chain.Address{1}, chain.Address{2}, chain.Address{3}
	stranger, trader      = chain.Address{8}, chain.Address{9}

	roster = map[chain.Address]int{master: 1, backup: 2, third: 3}
)

const patience = 10_000

// story is a chain that a test writes, a block a second.
type fixture struct {
	t      *testing.T
	ledger *Ledger
	tip    chain.BlockRef
	serial uint32
	rows   []Row
}

func begin(t *testing.T, from uint64) *fixture {
	return &fixture{t: t, ledger: New(Config{Roster: roster, From: from, Patience: patience})}
}

// block adds the next block with the given transactions.
func (s *fixture) block(txs ...Transaction) {
	s.t.Helper()
	next := chain.BlockRef{Number: s.tip.Number + 1, Parent: s.tip.Hash, Hash: chain.Keccak256(s.tip.Hash[:])}
	next.TimeMs = next.Number * 1000
	s.tip = next
	for i := range txs {
		s.serial++
		txs[i].Hash = chain.Keccak256([]byte{byte(s.serial), byte(s.serial >> 8)})
		txs[i].Block, txs[i].BlockHash = next.Number, next.Hash
	}
	rows, err := s.ledger.Block(Block{next, txs})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows = append(s.rows, rows...)
}

func (s *fixture) blocks(n int) {
	for range n {
		s.block()
	}
}

func (s *fixture) end() ([]Row, Totals) {
	rows, totals := s.ledger.Close()
	return append(s.rows, rows...), totals
}

func key(name string) chain.Hash { return chain.Keccak256([]byte(name)) }

// asked is a trader's market order.
func asked(order string) Transaction {
	created := perp.OrderCreated{Order: perp.Order{Key: key(order), OrderType: perp.MarketIncrease}}
	return Transaction{Tx: chain.Tx{From: trader, OK: true}, Events: []perp.Event{created}}
}

// executes is a keeper's transaction that ended an order in a way.
func executes(by chain.Address, order string, gas uint64, how perp.Status) Transaction {
	return Transaction{
		Tx: chain.Tx{From: by, OK: true, GasUsed: gas, GasPrice: 3}, Call: job.NeedOf(job.Order, key(order), false),
		Events: []perp.Event{perp.OrderEnded{Key: key(order), Status: how}},
	}
}

// loses is a keeper's transaction that reverted.
func loses(by chain.Address, kind job.Kind, of string, gas uint64) Transaction {
	return Transaction{Tx: chain.Tx{From: by, GasUsed: gas, GasPrice: 3},
		Call: job.NeedOf(kind, key(of), true)}
}

// liquidates is a keeper's liquidation of a position, by reports of a time.
func liquidates(by chain.Address, position string, gas, oracleMs uint64) Transaction {
	return Transaction{
		Tx:   chain.Tx{From: by, OK: true, GasUsed: gas, GasPrice: 3},
		Call: job.NeedOf(job.Liquidation, key(position), true), OracleMs: oracleMs,
		Events: []perp.Event{
			perp.OrderCreated{Order: perp.Order{Key: key("of " + position), OrderType: perp.Liquidation}},
			perp.PositionDecreased{OrderKey: key("of " + position), OrderType: perp.Liquidation,
				Position: perp.Position{PositionKey: key(position)}},
			perp.OrderEnded{Key: key("of " + position), Status: perp.Executed},
		},
	}
}

// opens is the execution of a trader's order that opens a position.
func opens(by chain.Address, order, position string) Transaction {
	tx := executes(by, order, 100, perp.Executed)
	tx.Events = append([]perp.Event{perp.PositionIncreased{OrderKey: key(order),
		Position: perp.Position{PositionKey: key(position)}}}, tx.Events...)
	return tx
}

func withdraws(by chain.Address, order string) Transaction {
	ended := perp.OrderEnded{Key: key(order), Status: perp.Cancelled, Reason: "USER_INITIATED_CANCEL"}
	return Transaction{Tx: chain.Tx{From: by, OK: true}, Events: []perp.Event{ended}}
}

// brief is what of a row a test compares.
type rowSummary struct {
	kind        job.Kind
	state       State
	result      execution.Result
	tier        int
	age         uint64
	by          Clock
	late, early int
}

func briefly(rows []Row) (all []rowSummary) {
	for _, r := range rows {
		b := rowSummary{kind: r.Kind, state: r.State, result: r.Result, age: r.AgeMs, by: r.AgeBy, late: r.Late(),
			early: len(r.Losers) - r.Late()}
		if r.Winner != nil {
			b.tier = r.Winner.Tier
		}
		all = append(all, b)
	}
	return all
}

// TIER-17: who was first, how old the job was, and who came too late or too early.
func TestAccounts(t *testing.T) {
	for name, c := range map[string]struct {
		tell func(*fixture)
		want []rowSummary
	}{
		"one executes": {
			func(s *fixture) { s.block(asked("a")); s.blocks(1); s.block(executes(master, "a", 100, perp.Executed)) },
			[]rowSummary{{job.Order, Done, execution.Executed, 1, 2000, ByRequest, 0, 0}},
		},
		"two race, in one block": {
			func(s *fixture) {
				s.block(asked("a"))
				s.block(executes(backup, "a", 100, perp.Executed), loses(master, job.Order, "a", 30))
			},
			[]rowSummary{{job.Order, Done, execution.Executed, 2, 1000, ByRequest, 1, 0}},
		},
		"three race, the last a while later": {
			func(s *fixture) {
				s.block(asked("a"))
				s.block(executes(third, "a", 100, perp.Executed), loses(master, job.Order, "a", 30))
				s.blocks(5)
				s.block(loses(backup, job.Order, "a", 30))
			},
			[]rowSummary{{job.Order, Done, execution.Executed, 3, 1000, ByRequest, 2, 0}},
		},
		"too late beyond patience is an account of its own": {
			func(s *fixture) {
				s.block(asked("a"))
				s.block(executes(third, "a", 100, perp.Executed))
				s.blocks(10)
				s.block(loses(backup, job.Order, "a", 30))
			},
			[]rowSummary{{job.Order, Done, execution.Executed, 3, 1000, ByRequest, 0, 0},
				{job.Order, Attempted, "", 0, 0, "", 0, 1}},
		},
		"the venue cancels": {
			func(s *fixture) { s.block(asked("a")); s.block(executes(master, "a", 100, perp.Cancelled)) },
			[]rowSummary{{job.Order, Done, execution.Cancelled, 1, 1000, ByRequest, 0, 0}},
		},
		"its owner was faster": {
			func(s *fixture) {
				s.block(asked("a"))
				s.block(withdraws(trader, "a"), loses(master, job.Order, "a", 30))
			},
			[]rowSummary{{job.Order, Withdrawn, execution.Cancelled, 0, 0, "", 1, 0}},
		},
		"a keeper cancels what expired": {
			func(s *fixture) { s.block(asked("a")); s.block(withdraws(backup, "a")) },
			[]rowSummary{{job.Order, Withdrawn, execution.Cancelled, 0, 0, "", 0, 0}},
		},
		"an owner takes back what nobody could execute": {func(s *fixture) {
			s.block(withdraws(trader,
				"a limit order"))
		}, nil},
		"nobody executes": {
			func(s *fixture) { s.block(asked("a")) }, []rowSummary{{job.Order, Waiting, "", 0, 0, "", 0, 0}},
		},
		"frozen, then executed by the role": {
			func(s *fixture) {
				s.block(executes(master, "limit", 100, perp.Frozen))
				s.block(executes(backup, "limit", 100, perp.Executed))
			},
			[]rowSummary{{job.Order, Done, execution.Frozen, 1, 0, "", 0, 0},
				{job.Order, Done, execution.Executed, 2, 0, "", 0, 0}},
		},
		"a liquidation too early, in time, too late": {
			func(s *fixture) {
				s.block(loses(master, job.Liquidation, "p", 60))
				s.block(liquidates(master, "p", 100, 1500), loses(backup, job.Liquidation, "p", 50))
			},
			[]rowSummary{{job.Liquidation, Done, execution.Liquidated, 1, 500, ByReports, 1, 1}},
		},
		"liquidated twice": {
			func(s *fixture) { s.block(liquidates(master, "p", 100, 0)); s.block(liquidates(backup, "p", 100, 0)) },
			[]rowSummary{{job.Liquidation, Done, execution.Liquidated, 1, 0, "", 0, 0},
				{job.Liquidation, Done, execution.Liquidated, 2, 0, "", 0, 0}},
		},
		"opened again after its liquidation, and tried": {
			func(s *fixture) {
				s.block(liquidates(master, "p", 100, 0))
				s.block(opens(master, "again", "p"))
				s.block(loses(backup, job.Liquidation, "p", 50))
			},
			[]rowSummary{
				{job.Liquidation, Done, execution.Liquidated, 1, 0, "", 0, 0},
				{job.Order, Done, execution.Executed, 1, 0, "", 0, 0},
				{job.Liquidation, Attempted, "", 0, 0, "", 0, 1},
			},
		},
		"made larger while it is tried": {
			func(s *fixture) {
				s.block(loses(master, job.Liquidation, "p", 60))
				s.block(opens(master, "more", "p"))
				s.block(liquidates(backup, "p", 100, 0), loses(third, job.Liquidation, "p", 50))
			},
			[]rowSummary{{job.Order, Done, execution.Executed, 1, 0, "", 0, 0},
				{job.Liquidation, Done, execution.Liquidated, 2, 0, "", 1, 1}},
		},
		"a keeper nobody named": {
			func(s *fixture) {
				s.block(asked("a"))
				s.block(executes(stranger, "a", 100, perp.Executed), loses(master, job.Order, "a", 30))
			},
			[]rowSummary{{job.Order, Done, execution.Executed, 0, 1000, ByRequest, 1, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, 0)
			c.tell(s)
			rows, _ := s.end()
			if got := briefly(rows); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestOnlyTheRangeCounts: what is before it gives due times and winners, and is in no sum.
func TestOnlyTheRangeCounts(t *testing.T) {
	s := begin(t, 4)
	s.block(asked("early"), asked("late"), asked("gone"), asked("raced"))
	s.block(executes(master, "early", 100, perp.Executed), executes(master, "raced", 100, perp.Executed),
		loses(backup, job.Order, "raced", 30))
	s.block(withdraws(trader, "gone"))
	s.block(executes(master, "late", 100, perp.Executed), loses(third, job.Order, "raced", 30))
	rows, totals := s.end()
	want := []rowSummary{{job.Order, Done, execution.Executed, 1, 3000, ByRequest, 0, 0},
		{job.Order, Done, execution.Executed, 1, 1000, ByRequest, 1, 0}}
	if got := briefly(rows); len(got) != 2 || !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if all := totals.All(); all.Won.Count != 1 || all.Won.Gas != 100 || all.Late.Count != 1 || all.Late.Gas != 30 {
		t.Errorf("sums %+v", all)
	}
}

// TestOneTransactionIsPaidOnce: the job it was called for pays, what goes along does not.
func TestOneTransactionIsPaidOnce(t *testing.T) {
	s := begin(t, 0)
	both := executes(master, "a", 100, perp.Executed)
	both.Events = append([]perp.Event{
		perp.OrderEnded{Key: key("swept"), Status: perp.Cancelled, Reason: "AUTO_CANCEL"},
		perp.RequestEnded{Kind: perp.Deposit, Key: key("d"), Status: perp.Executed},
	}, both.Events...)
	unnamed := both
	unnamed.Call = job.Need{}
	s.block(both)
	s.blocks(20)
	s.block(unnamed)
	s.block(Transaction{Tx: chain.Tx{From: master, OK: true, GasUsed: 21, GasPrice: 2}})
	_, totals := s.end()
	if all := totals.All(); all.Won.Count != 4 || all.Won.Gas != 200 || all.Won.Wei != chain.U64(600) {
		t.Errorf("sums %+v", all)
	}
	if totals.Other.Count != 1 || totals.Other.Gas != 21 || totals.Other.Wei != chain.U64(42) {
		t.Errorf("other %+v", totals.Other)
	}
}

// TestBooksDemandAChain: a block that does not follow the one before is refused, not summed.
func TestBooksDemandAChain(t *testing.T) {
	l := New(Config{Roster: roster, Patience: patience})
	one := chain.BlockRef{Number: 1, Hash: chain.Hash{1}}
	if _, err := l.Block(Block{Ref: one}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Block(Block{Ref: chain.BlockRef{Number: 2, Hash: chain.Hash{2},
		Parent: chain.Hash{7}}}); err == nil {
		t.Fatal("a block of another branch was booked")
	}
}

// TestMemoryIsBounded: accounts of long ago are closed.
func TestMemoryIsBounded(t *testing.T) {
	s := begin(t, 0)
	for i := range 1000 {
		order := fmt.Sprint(i)
		s.block(asked(order))
		s.block(executes(master, order, 100, perp.Executed))
		if open := len(s.ledger.open); open > patience/1000 || len(s.ledger.checks) > patience/1000+1 {
			t.Fatalf("%d accounts are open and %d appointments made at block %d", open, len(s.ledger.checks),
				s.tip.Number)
		}
	}
	if rows, totals := s.end(); len(rows) != 1000 || totals.All().Jobs != 1000 || totals.All().Ages(ByRequest).
		Count != 1000 {
		t.Fatalf("%d rows, %+v", len(rows), totals.All())
	}
}

// TIER-18: the saving is (n-1)r/(1+(n-1)r) where nobody loses, and less by what is lost.
func TestSaving(t *testing.T) {
	s := begin(t, 0)
	for i := range 10 {
		order := fmt.Sprint(i)
		txs := []Transaction{executes(master, order, 1000, perp.Executed)}
		if i == 0 {
			txs = append(txs, loses(backup, job.Order, order, 300))
		}
		s.block(txs...)
	}
	s.block(liquidates(master, "p", 1000, 0))
	_, totals := s.end()
	report := totals.Report(3, Rates{job.Order: 999, job.Liquidation: 500})
	orders, liquidations := report.Kinds[1], report.Kinds[0]
	if *orders.LossRatio != 300 || orders.Saving.Everyone != 16_000 || orders.Saving.Spent != 10_300 ||
		orders.Saving.AtMost != 375 || orders.Saving.Saved != 356 {
		t.Errorf("orders: %+v, %+v", orders.Saving, *orders.LossRatio)
	}
	if *liquidations.LossRatio != 500 || !liquidations.Saving.Assumed || liquidations.Saving.Everyone != 2000 ||
		liquidations.Saving.Saved != 500 {
		t.Errorf("liquidations: %+v", liquidations.Saving)
	}
	if report.All.Saving.Everyone != 18_000 || report.All.Saving.Spent != 11_300 || report.All.LossRatio != nil {
		t.Errorf("all: %+v", report.All.Saving)
	}
	if none := totals.Report(3, nil); none.Kinds[0].Saving != nil || none.All.Saving != nil ||
		none.Kinds[1].Saving == nil {
		t.Errorf("without a ratio: %+v", none)
	}
}

// TestWhatIsWritten reads like a table, and the JSON like numbers.
func TestWhatIsWritten(t *testing.T) {
	s := begin(t, 0)
	s.block(asked("a"), asked("b"))
	s.block(executes(master, "a", 1_234_567, perp.Executed), loses(backup, job.Order, "a", 400_000))
	s.block(liquidates(third, "p", 900_000, 1500))
	rows, totals := s.end()
	var out strings.Builder
	if err := WriteHeader(&out); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
	}
	report := totals.Report(3, Rates{job.Liquidation: 540})
	if err := report.Write(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"order 0x3ac225…f1cb executed tier 1 0x010000…0000 2 1s 1 234 567 1 - 400 000",
		"order 0xb5553d…5510 waiting - - - - - - -",
		"liquidation 0x2304e8…44ab liquidated tier 3 0x030000…0000 3 ≥1.5s 900 000 - - -",
		"order 2 1 - - 1 - 1s 1s 1s - -",
		"liquidation 1 900 000 - - - - 2700000 0.540* 1 872 000 51.9 % 51.9 %",
		"order 1 1 234 567 1 400 000 - - 4903701 0.324 2 034 566 19.7 % 39.3 %",
		"all 2 2 134 567 1 400 000 - - 7603701 - 3 906 566 35.1 % 45.4 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	encoded, err := json.Marshal(map[string]any{"jobs": rows, "report": report})
	for _, want := range []string{`"r":0.324`, `"late":true`, `"byTier":{"3":1}`, `"wei":"2700000"`, `"atMost":0.393`} {
		if err != nil || !strings.Contains(string(encoded), want) {
			t.Errorf("%s is not in %s, %v", want, encoded, err)
		}
	}
}

func TestRatioText(t *testing.T) {
	for text, want := range map[string]Ratio{"0.3": 300, "1": 1000, "0.054": 54, "2.5": 2500, "0": 0} {
		var r Ratio
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %d, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "-1", "0.0001", "x", "1e3", "0,3"} {
		var r Ratio
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, r)
		}
	}
	if Ratio(-56).String() != "-0.056" || Ratio(-56).Percent() != "-5.6 %" || Ratio(375).Percent() != "37.5 %" {
		t.Error(Ratio(-56), Ratio(-56).Percent())
	}
}

// A shift's withdrawal and deposit are made and over within its transaction: they are nobody's job, and one row tells
// of it.
func TestRequestsWithinARequestAreNoJobs(t *testing.T) {
	s := begin(t, 1)
	request := func(kind perp.RequestKind, name string) []perp.Event {
		return []perp.Event{
			perp.RequestCreated{Request: perp.Request{Kind: kind, Key: key(name)}},
			perp.RequestEnded{Kind: kind, Key: key(name), Status: perp.Executed},
		}
	}
	shift := request(perp.Shift, "shift")
	s.block(Transaction{Tx: chain.Tx{From: trader, OK: true}, Events: shift[:1]})
	s.block(Transaction{
		Tx: chain.Tx{From: master, OK: true, GasUsed: 7}, Call: job.NeedOf(job.Shift, key("shift"), false),
		Events: slices.Concat(request(perp.Withdrawal, "withdrawal"), request(perp.Deposit, "deposit"), shift[1:]),
	})
	rows, _ := s.end()
	if len(rows) != 1 || rows[0].Kind != job.Shift || rows[0].State != Done || rows[0].Winner.Gas != 7 {
		t.Errorf("%+v", rows)
	}
}
