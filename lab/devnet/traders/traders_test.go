package traders

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/exchange"
)

// testLog shows the traders' log when a test fails or runs verbosely.
func testLog(t *testing.T) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
}

// brisk is a rate that a simulated chain can follow, with positions that its blocks cannot overtake.
func brisk() Config {
	cfg := DefaultConfig()
	cfg.Accounts, cfg.Rate, cfg.LiquidationsEvery = 4, 8, 400*time.Millisecond
	cfg.MinDistance, cfg.MaxDistance = 20, 50
	return cfg
}

// TestEveryActionMakesWork lets one account do each thing until the keeper has seen what it is to lead to. An action
// may find nothing to do, or be overtaken by the price, so it is repeated.
func TestEveryActionMakesWork(t *testing.T) {
	s := newStage(t)
	traders, err := New(brisk(), Deps{Client: s.client, Faucet: s.keys["faucet"], Marks: s.marks, Log: s.log})
	if err != nil {
		t.Fatal(err)
	}
	a := <-traders.idle
	for _, step := range []struct {
		do   string
		sees string
	}{
		{"open", "PositionIncrease"}, {"protect", "OrderCreated"}, {"update order", "OrderUpdated"},
		{"place entry", "OrderCreated"}, {"spread entry", "OrderExecuted"},
		{"cancel order", "OrderCancelled"}, {"open", "PositionIncrease"}, {"close", "PositionDecrease"},
		{"deposit", "DepositExecuted"},
		{"withdraw", "WithdrawalExecuted"}, {"swap", "SwapInfo"}, {"place swap", "OrderCreated"},
	} {
		do := actions[slices.IndexFunc(actions, func(a action) bool { return a.name == step.do })]
		before := s.counted(step.sees)
		s.until(step.sees+" after "+step.do, func() bool {
			a.act(t.Context(), do)
			return s.counted(step.sees) > before
		})
	}
}

// TestOldOrdersAreTakenBack: an account whose orders no price reaches does not leave more and more of them behind.
func TestOldOrdersAreTakenBack(t *testing.T) {
	s := newStage(t)
	traders, err := New(brisk(), Deps{Client: s.client, Faucet: s.keys["faucet"], Marks: s.marks, Log: s.log})
	if err != nil {
		t.Fatal(err)
	}
	a := <-traders.idle
	const more = 3
	place := action{name: "place far", run: (*account).placeFar}
	s.until("orders that nothing reaches", func() bool {
		a.act(t.Context(), place)
		return s.counted("OrderCreated") >= mostWaiting+more
	})
	s.until("what is too much being taken back", func() bool { return s.counted("OrderCancelled") >= more })
	if len(a.orders) != mostWaiting {
		t.Errorf("%d orders are kept", len(a.orders))
	}
}

// placeFar waits for twice what a swap yields.
func (a *account) placeFar(ctx context.Context) error {
	request, worth, err := a.exchangeOf(1)
	if err != nil {
		return err
	}
	request.Type, request.MinOutput = exchange.LimitSwap, scale(worth, 10_000)
	return a.place(ctx, place{}, request)
}

// TestEveryWayOfLiquidity runs the providers and the winner until the keeper has executed each kind of what they ask
// for.
func TestEveryWayOfLiquidity(t *testing.T) {
	s := newStage(t)
	cfg := brisk()
	cfg.Accounts, cfg.Rate, cfg.LiquidationsEvery, cfg.ProvideEvery, cfg.WinEvery = 1, 1, time.Hour,
		200*time.Millisecond, 300*time.Millisecond
	_, stop := s.trade(cfg)
	for _, kind := range []string{
		"DepositExecuted", "WithdrawalExecuted", "ShiftExecuted", "GlvDepositExecuted", "GlvWithdrawalExecuted",
		"GlvShiftExecuted", "deleveraging",
	} {
		s.until(kind, func() bool { return s.counted(kind) >= 1 })
	}
	stop()
}

// TestTightPositionsAreLiquidated runs everybody until liquidations have happened.
func TestTightPositionsAreLiquidated(t *testing.T) {
	s := newStage(t)
	cfg := brisk()
	cfg.Accounts, cfg.Rate = 1, 1
	_, stop := s.trade(cfg)
	s.until("liquidations", func() bool { return s.counted("liquidation") >= 2 })
	stop()
}

// TestTheySurviveTheNode: after a stall, and after a reorg, the traders go on.
func TestTheySurviveTheNode(t *testing.T) {
	s := newStage(t)
	var log lockedBuffer
	s.log = zerolog.New(&log)
	traders, stop := s.trade(brisk())
	goesOn := func(when string) {
		t.Helper()
		before := s.counted("OrderCreated")
		s.until("new orders "+when, func() bool { return s.counted("OrderCreated") >= before+3 })
	}
	goesOn("at first")
	traders.Rest(true)
	s.until("everybody at rest", func() bool {
		return len(traders.idle)+len(traders.daring) == brisk().Accounts+brisk().
			Daredevils
	})
	traders.Rest(false)
	goesOn("after a rest")
	s.chain.down.Store(true)
	s.until("a failed action while the node is down",
		func() bool { return strings.Contains(log.String(), errDown.Error()) })
	s.chain.down.Store(false)
	goesOn("after the stall")
	for _, depth := range []int64{1, 8} {
		s.reorg(depth)
		goesOn("after a reorg")
	}
	stop()
	if !strings.Contains(log.String(), "action failed and is dropped") {
		t.Error("a failed action was not logged")
	}
}

func TestAccountsFollowFromTheSeed(t *testing.T) {
	addresses := func(seed uint64) map[common.Address]bool {
		cfg := DefaultConfig()
		cfg.Seed = seed
		traders, err := New(cfg, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[common.Address]bool{}
		for range cfg.Accounts {
			all[(<-traders.idle).address] = true
		}
		return all
	}
	first := addresses(1)
	if len(first) != DefaultConfig().Accounts || !maps.Equal(first, addresses(1)) {
		t.Error("the same seed gives other accounts")
	}
	for address := range addresses(2) {
		if first[address] {
			t.Errorf("%s belongs to two seeds", address)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"accounts is 0":                    func(c *Config) { c.Accounts = 0 },
		"rate is -1":                       func(c *Config) { c.Rate = -1 },
		"liquidations every is 0":          func(c *Config) { c.LiquidationsEvery = 0 },
		"daredevils is 0":                  func(c *Config) { c.Daredevils = 0 },
		"greatest distance 4 is below":     func(c *Config) { c.MaxDistance = 4 },
		"greatest leverage is 0":           func(c *Config) { c.MaxLeverage = 0 },
		"providers is 0":                   func(c *Config) { c.Providers = 0 },
		"provide every is 0":               func(c *Config) { c.ProvideEvery = 0 },
		"win every is 0":                   func(c *Config) { c.WinEvery = 0 },
		"action timeout is 0: must be pos": func(c *Config) { c.ActionTimeout = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestPickFollowsTheWeights: every action is drawn, about as often as its weight says.
func TestPickFollowsTheWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	drawn := map[string]int{}
	for range 100_000 {
		drawn[pick(random).name]++
	}
	for _, a := range actions {
		if n := drawn[a.name]; n < a.weight*900 || n > a.weight*1_100 {
			t.Errorf("%s was drawn %d times of 100 000, weight %d %%", a.name, n, a.weight)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
