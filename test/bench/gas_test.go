package bench

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/devnettest"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/job"
	books "perpkeeper/pkg/tier/execution/ledger"
)

// TestLossRatio measures TIER-18's r on the devnet's contracts: for each kind of job two keepers send the same call at
// the same time, one of them executes, the other reverts. Run with -v; docs/failover.md holds its figures. Gas does not
// depend on the machine.
func TestLossRatio(t *testing.T) {
	s := devnettest.Start(t)
	m := s.Market("ETH/USD")
	g := gas{t: t, won: map[string]uint64{}, lines: []string{"| job | winner's gas | loser's gas | r | saved, n = 3 |",
		"|---|---|---|---|---|"}}
	if err := s.Pin("WETH", 3_000_000_000); err != nil {
		t.Fatal(err)
	}

	order := func(name string, r exchange.OrderRequest) {
		asked := s.Order(r)
		winner, loser := s.Race(0, 4, s.ExecuteOrder(asked.Key, s.Reports(m, asked.Second)))
		g.race(name, winner, loser)
	}
	open := exchange.OrderRequest{
		Market: m.Address, Collateral: m.Short, Type: exchange.MarketIncrease, IsLong: true, SizeUSD: dollars(90_000),
		CollateralAmount: big.NewInt(2_000e6),
	}
	order("market order, opens", open)
	limit := open
	limit.Type, limit.TriggerPrice = exchange.LimitIncrease, exchange.USD30(3_010_000_000, 18)
	limit.SizeUSD, limit.CollateralAmount = dollars(1_000), big.NewInt(100e6)
	order("limit order, grows", limit)
	shut := exchange.OrderRequest{Market: m.Address, Collateral: m.Short, Type: exchange.MarketDecrease, IsLong: true,
		SizeUSD: dollars(1_000)}
	order("market order, shrinks", shut)

	// A trigger that is not reached and a position that is healthy: what a keeper pays who sends too early.
	waiting := limit
	waiting.TriggerPrice = exchange.USD30(2_000_000_000, 18)
	early := s.Order(waiting)
	tooEarly := s.Mined(s.Send(0, s.ExecuteOrder(early.Key, s.Reports(m, early.Second)), 1))
	healthy := s.Mined(s.Send(0, s.ExecuteLiquidation(m, m.Short, true, s.Reports(m, s.Now())), 1))

	if err := s.Pin("WETH", 2_955_000_000); err != nil {
		t.Fatal(err)
	}
	pinned := s.Now() + 2 // from then on every report has the new price
	winner, loser := s.Race(0, 4, s.ExecuteLiquidation(m, m.Short, true, s.Reports(m, pinned)))
	g.race("liquidation", winner, loser)
	g.early("limit order, too early", g.won["limit order, grows"], tooEarly)
	g.early("liquidation, too early", winner.GasUsed, healthy)

	deposit := s.Deposit(exchange.DepositRequest{Market: m, LongAmount: big.NewInt(1e18),
		ShortAmount: big.NewInt(3_000e6)})
	winner, loser = s.Race(0, 4, s.ExecuteDeposit(deposit.Key, s.Reports(m, deposit.Second)))
	g.race("deposit", winner, loser)
	withdrawal := s.Withdrawal(exchange.WithdrawalRequest{Market: m, MarketTokens: big.NewInt(1e18)})
	winner, loser = s.Race(0, 4, s.ExecuteWithdrawal(withdrawal.Key, s.Reports(m, withdrawal.Second)))
	g.race("withdrawal", winner, loser)
	t.Log("\n" + strings.Join(g.lines, "\n"))
}

func dollars(n int64) *big.Int { return exchange.USD30(n*1e6, 0) }

// gas writes a markdown table.
type gas struct {
	t     *testing.T
	won   map[string]uint64
	lines []string
}

func (g *gas) linef(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

// race reckons as the audit does, and demands that losing costs less than winning, and something.
func (g *gas) race(name string, winner, loser *types.Receipt) {
	g.t.Helper()
	g.won[name] = winner.GasUsed
	sum := &books.Sum{Kind: job.Order, Won: books.Cost{Count: 1, Gas: winner.GasUsed},
		Late: books.Cost{Count: 1, Gas: loser.GasUsed}}
	r, measured := sum.LossRatio()
	saving, known := books.Rates{}.Saving(3, sum)
	if !measured || !known || r < 100 || r > 900 {
		g.t.Errorf("%s: winner %d, loser %d", name, winner.GasUsed, loser.GasUsed)
	}
	g.linef("| %s | %d | %d | %s | %s |", name, winner.GasUsed, loser.GasUsed, r, saving.AtMost.Percent())
}

// early is a call that came too soon: it has to revert.
func (g *gas) early(name string, winner uint64, loser *types.Receipt) {
	g.t.Helper()
	if loser.Status != types.ReceiptStatusFailed {
		g.t.Errorf("%s: it was executed", name)
	}
	g.linef("| %s | %d | %d | %s | |", name, winner, loser.GasUsed, books.Ratio(loser.GasUsed*1000/winner))
}
