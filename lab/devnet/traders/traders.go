// Package traders is the devnet's public: a number of accounts that trade on the exchange at random, so that keepers
// have work.
//
// Some provide liquidity to pools and GLVs, move it between them and take it back; one, now and then, gains more than
// its market allows and is deleveraged.
//
// The others open positions with market, limit and stop orders, some of them so tight that a small move liquidates
// them, put take-profit and stop-loss orders beside them, change and cancel orders, close positions, and move liquidity
// in and out of the pools. Some entries are spread over several orders. They swap, at market and at a limit, along
// paths of up to three markets, and pay in and take out other tokens than a position's; some of their requests call a
// contract back that uses up all the gas it gets, and some tight positions bring six orders that have to be cancelled
// with them. What they do is drawn from a seed, but what comes of it depends on prices, blocks and keepers: a run
// cannot be repeated exactly.
//
// An action that fails is logged and dropped. Before an account acts again after a failure, it looks at the chain anew
// and restores what a reorg may have taken from it: native coin, tokens, approvals. Traders survive a node that stalls,
// restarts or reorganises.
package traders

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/exchange"
)

// Marks tells the present prices.
type Marks interface {
	// Mark returns the price of a token to sell and to buy at, in USD with 30 decimals per smallest unit; nil if it is
	// not known.
	Mark(token common.Address) (low, high *big.Int)
}

// Config says who trades and how much.
type Config struct {
	// Seed decides the accounts' keys and what they do.
	Seed uint64
	// Accounts is how many trade; an account does one thing at a time.
	Accounts int
	// Rate is how many actions are begun per second, all accounts together, as long as there are idle ones.
	Rate int
	// Daredevils is how many further accounts do nothing but open positions so tight that a move of at most MaxDistance
	// liquidates them. They are others than the traders because an account has one position per market, collateral and
	// side.
	Daredevils int
	// LiquidationsEvery is the time between two such positions.
	LiquidationsEvery time.Duration
	// Providers is how many further accounts do nothing but move liquidity into, between and out of pools and GLVs, one
	// step each ProvideEvery.
	Providers    int
	ProvideEvery time.Duration
	// WinEvery is the time between two steps of the one account that gains too much; see account.win.
	WinEvery time.Duration
	// MinDistance and MaxDistance bound the move that liquidates them, in hundredths of a percent of the price.
	MinDistance, MaxDistance int64
	// MaxLeverage bounds size over collateral of every position.
	MaxLeverage int64
	// ActionTimeout ends an action whose transactions do not get into a block.
	ActionTimeout time.Duration
}

// DefaultConfig suits a demo with prices that walk by some hundredths of a percent a second: several liquidations a
// minute.
func DefaultConfig() Config {
	return Config{
		Seed: 1, Accounts: 12, Rate: 2, Daredevils: 4, LiquidationsEvery: 3 * time.Second, Providers: 2,
		ProvideEvery: time.Second,
		WinEvery:     1500 * time.Millisecond, MinDistance: 5, MaxDistance: 25,
		MaxLeverage: 95, ActionTimeout: 20 * time.Second,
	}
}

func (c Config) validate() error {
	var problems []error
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"accounts", int64(c.Accounts)}, {"rate", int64(c.Rate)}, {"daredevils", int64(c.Daredevils)},
		{"liquidations every", int64(c.LiquidationsEvery)},
		{"providers", int64(c.Providers)}, {"provide every", int64(c.ProvideEvery)}, {"win every", int64(c.WinEvery)},
		{"least distance", c.MinDistance}, {"greatest leverage", c.MaxLeverage},
		{"action timeout", int64(c.ActionTimeout)},
	} {
		if field.value <= 0 {
			problems = append(problems, fmt.Errorf("%s is %d: must be positive", field.name, field.value))
		}
	}
	if c.MaxDistance < c.MinDistance {
		problems = append(problems, fmt.Errorf("greatest distance %d is below the least, %d", c.MaxDistance,
			c.MinDistance))
	}
	return errors.Join(problems...)
}

// Deps are what the traders need of the world.
type Deps struct {
	Client *exchange.Client
	// Faucet pays the accounts' gas and execution fees. Nobody else may send from it while the traders run.
	Faucet *ecdsa.PrivateKey
	Marks  Marks
	// GlvManager asks for the GLVs' shifts and needs ORDER_KEEPER for it; nil = nobody does. Nobody else may send from
	// it while the traders run.
	GlvManager *ecdsa.PrivateKey
	// Shock moves a token's price at once, by basis points; nil = nobody gains too much.
	Shock func(token common.Address, points int64) error
	Log   zerolog.Logger
}

// Traders trade while Run runs.
type Traders struct {
	cfg    Config
	deps   Deps
	random *rand.Rand
	// idle accounts, daredevils, providers and winners.
	idle, daring, providing, winning chan *account
	// faucet and manager are held while their accounts send.
	faucet, manager sync.Mutex
	rests           atomic.Bool
}

// New derives the accounts; it sends nothing yet.
func New(cfg Config, deps Deps) (*Traders, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("traders: %w", err)
	}
	t := &Traders{
		cfg: cfg, deps: deps, random: rand.New(rand.NewPCG(cfg.Seed, 0)),
		idle: make(chan *account, cfg.Accounts), daring: make(chan *account, cfg.Daredevils),
		providing: make(chan *account, cfg.Providers),
		winning:   make(chan *account, 1),
	}
	number := uint64(0)
	for _, idle := range []chan *account{t.idle, t.daring, t.providing, t.winning} {
		for range cap(idle) {
			a, err := newAccount(t, number)
			if err != nil {
				return nil, fmt.Errorf("traders: account %d: %w", number, err)
			}
			idle <- a
			number++
		}
	}
	return t, nil
}

// Run trades until ctx ends, and returns nil when the actions under way have ended too.
func (t *Traders) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	actions := time.NewTicker(time.Second / time.Duration(t.cfg.Rate))
	defer actions.Stop()
	tight := time.NewTicker(t.cfg.LiquidationsEvery)
	defer tight.Stop()
	steps := time.NewTicker(t.cfg.ProvideEvery)
	defer steps.Stop()
	bets := time.NewTicker(t.cfg.WinEvery)
	defer bets.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-steps.C:
			t.begin(ctx, &running, t.providing, provide)
		case <-bets.C:
			t.begin(ctx, &running, t.winning, win)
		case <-tight.C:
			t.begin(ctx, &running, t.daring, openTight)
		case <-actions.C:
			t.begin(ctx, &running, t.idle, pick(t.random))
		}
	}
}

// Rest stops traders from beginning anything new, or lets them begin again. What is under way goes on.
func (t *Traders) Rest(rest bool) { t.rests.Store(rest) }

// begin lets an idle account do something, unless all rest. If all are busy, as when the node stalls, nothing is begun.
func (t *Traders) begin(ctx context.Context, running *sync.WaitGroup, idle chan *account, do action) {
	if t.rests.Load() {
		return
	}
	select {
	case a := <-idle:
		running.Go(func() {
			defer func() { idle <- a }()
			a.act(ctx, do)
		})
	default:
		t.deps.Log.Debug().Str("action", do.name).Msg("every trader is busy")
	}
}
