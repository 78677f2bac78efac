package keeperctl

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/operator/pnl"
)

// balancesAt are balances of one account by block.
type balancesAt map[uint64]uint64

// BalanceAt implements balanceSource.
func (b balancesAt) BalanceAt(_ context.Context, _ chain.Address, block uint64) (chain.Uint, error) {
	return chain.U64(b[block] * 1e15), nil
}

var alice, ethMarket, btcMarket = chain.Address{0xa1}, chain.Address{0xe1}, chain.Address{0xb1}

func earnedAndSpent() pnl.Statement {
	u := func(n uint64) chain.Uint { return chain.U64(n * 1e15) }
	return pnl.Statement{
		Generation: 3, First: 100, Last: 200, SinceMs: 1_800_000_000_000, UntilMs: 1_800_086_400_000,
		Entries: []pnl.Entry{
			{Signer: alice, Kind: job.Order, Market: ethMarket, Purpose: pnl.Executed, Transactions: 2, Fees: u(90),
				Gas: u(40)},
			{Signer: alice, Kind: job.Order, Market: ethMarket, Purpose: pnl.Lost, Transactions: 1, Gas: u(20)},
			{Signer: alice, Kind: job.Liquidation, Market: btcMarket, Purpose: pnl.Executed, Transactions: 1,
				Gas: u(50)},
		},
		Accounts: []pnl.Account{{Signer: alice, Booked: u(90)}},
	}
}

// What operators read adds up, and what fees and gas do not explain of a balance is shown as moved.
func TestPnl(t *testing.T) {
	balances := balancesAt{99: 1000, 200: 1480}
	var out strings.Builder
	err := printStatement(t.Context(), printer{Writer: &out}, nil, earnedAndSpent(), pnl.ByKind, balances)
	if err != nil {
		t.Error(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	wantTold(t, text, "final blocks 100 to 200", "liquidation 1 0 0 0 BNB 0.05 BNB 0 BNB 0 BNB −0.05 BNB",
		"order 3 1 0 0.09 BNB 0.06 BNB 0.02 BNB 0 BNB +0.03 BNB",
		"total 4 1 0 0.09 BNB 0.11 BNB 0.02 BNB 0 BNB −0.02 BNB",
		alice.Hex()+" 1 BNB −0.02 BNB +0.5 BNB 1.48 BNB 0.09 BNB")

	out.Reset()
	if err := printStatement(t.Context(), printer{Writer: &out, json: true}, nil, earnedAndSpent(), pnl.ByMarket,
		balances); err != nil {
		t.Error(err)
	}
	const milli = "000000000000000" // of a coin, in wei
	var told struct {
		FirstBlock uint64
		Lines      []struct{ Market, Net, LostGas string }
		Accounts   []struct{ Moved string }
	}
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || told.FirstBlock != 100 ||
		len(told.Lines) != 3 || told.Lines[2].Net != "-20"+milli || told.Lines[2].LostGas != "20"+milli ||
		told.Lines[0].Market != btcMarket.Hex() || told.Accounts[0].Moved != "500"+milli {
		t.Errorf("%+v, %v of %s", told, err, out.String())
	}
}

// A market has its name before its address, for people.
func TestPnlByMarketNamesIt(t *testing.T) {
	names := naming.New(namingtest.Node{}, namingtest.State{})
	names.Read(t.Context())
	s := earnedAndSpent()
	for i := range s.Entries {
		s.Entries[i].Market = namingtest.Market.MarketToken
	}
	var out strings.Builder
	if err := printStatement(t.Context(), printer{Writer: &out}, names, s, pnl.ByMarket, nil); err != nil {
		t.Error(err)
	}
	wantTold(t, out.String(), "ETH/USD [WETH-USDC] ("+namingtest.Market.MarketToken.Hex()+")")
}

// Figures that cannot be whole are shown, and said to be so.
func TestPnlThatIsNotWhole(t *testing.T) {
	s := earnedAndSpent()
	s.Accounts[0].Missing, s.Accounts[0].Booked = 2, chain.U64(91e15)
	var out strings.Builder
	err := printStatement(t.Context(), printer{Writer: &out}, nil, s, pnl.BySigner, nil)
	if err == nil || !strings.Contains(out.String(), "total") {
		t.Fatal(out.String(), err)
	}
	wantTold(t, err.Error(), "2 transactions of signer "+alice.Hex()+" that left no log",
		"the ledger has booked 91000000000000000 wei", "fees of 90000000000000000")
}

func TestPeriodsOfProfitAndLoss(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 24 * time.Hour, "week": 7 * 24 * time.Hour,
		"365d": 365 * 24 * time.Hour, "0d": 0, "-1d": 0, "4000d": 0, "3h": 0, "d": 0} {
		if got, err := wantedPeriod(strings.Fields(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
}
