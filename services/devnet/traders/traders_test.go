package traders

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"
)

// testLog shows the traders' log when a test fails or runs verbosely.
func testLog(t *testing.T) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
}

// brisk is a rate that a simulated chain can follow.
func brisk() Config {
	cfg := DefaultConfig()
	cfg.Accounts, cfg.Rate, cfg.LiquidationsEvery = 6, 10, 500*time.Millisecond
	return cfg
}

// TestTheyKeepKeepersBusy: every kind of work a keeper of this exchange can have turns up, liquidations among it.
func TestTheyKeepKeepersBusy(t *testing.T) {
	s := newStage(t)
	stop := s.trade(brisk())
	wanted := map[string]int{
		"PositionIncrease": 5, "PositionDecrease": 3, "liquidation": 2, "OrderExecuted": 10, "OrderUpdated": 1, "OrderCancelled": 1,
		"DepositExecuted": 1, "WithdrawalExecuted": 1,
	}
	s.until("every kind of work", func() bool {
		for name, n := range wanted {
			if s.counted(name) < n {
				return false
			}
		}
		return true
	})
	stop()
}

// TestTheySurviveTheNode: after a stall, and after a reorg, the traders go on.
func TestTheySurviveTheNode(t *testing.T) {
	s := newStage(t)
	var log lockedBuffer
	s.log = zerolog.New(&log)
	stop := s.trade(brisk())
	goesOn := func(when string) {
		t.Helper()
		before := s.counted("OrderCreated")
		s.until("new orders "+when, func() bool { return s.counted("OrderCreated") >= before+5 })
	}
	goesOn("at first")
	s.chain.down.Store(true)
	s.until("a failed action while the node is down", func() bool { return strings.Contains(log.String(), errDown.Error()) })
	s.chain.down.Store(false)
	goesOn("after the stall")
	for _, depth := range []int64{1, 3, 8} {
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
		"greatest distance 4 is below":     func(c *Config) { c.MaxDistance = 4 },
		"greatest leverage is 0":           func(c *Config) { c.MaxLeverage = 0 },
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
