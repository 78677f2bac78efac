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

// Who trades and how much: several liquidations a minute where prices walk by some hundredths of a percent a second. An
// account does one thing at a time.
const (
	// accounts trade at the rate they are told.
	accounts = 12
	// daredevils do nothing but open positions so tight that a move of minDistance to maxDistance hundredths of a
	// percent of the price liquidates them, one each tightEvery. They are others than the traders because an account
	// has one position per market, collateral and side.
	daredevils               = 4
	tightEvery               = 3 * time.Second
	minDistance, maxDistance = 5, 25
	// providers do nothing but move liquidity into, between and out of pools and GLVs, one step each provideEvery.
	providers    = 2
	provideEvery = time.Second
	// winEvery is the time between two steps of the one account that gains too much; see account.win.
	winEvery = 1500 * time.Millisecond
	// maxLeverage bounds size over collateral of every position.
	maxLeverage = 95
	// actionTimeout ends an action whose transactions do not get into a block.
	actionTimeout = 20 * time.Second
)

// Deps are what the traders need of the world.
type Deps struct {
	Client *exchange.Client
	// Faucet pays the accounts' gas and execution fees. Nobody else may send from it while the traders run.
	Faucet *ecdsa.PrivateKey
	Marks  Marks
	// GlvManager asks for the GLVs' shifts and needs ORDER_KEEPER for it. Nobody else may send from it while the
	// traders run.
	GlvManager *ecdsa.PrivateKey
	// Shock moves a token's price at once, by basis points.
	Shock func(token common.Address, points int64) error
	Log   zerolog.Logger
}

// Traders trade while Run runs.
type Traders struct {
	seed   uint64
	rate   int
	deps   Deps
	random *rand.Rand
	// idle accounts, daredevils, providers and winners.
	idle, daring, providing, winning chan *account
	// faucet and manager are held while their accounts send.
	faucet, manager sync.Mutex
	rests           atomic.Bool
}

// New derives the accounts from a seed, which also decides what they do: so many actions are begun per second, as long
// as there are idle ones. It sends nothing yet.
func New(seed uint64, rate int, deps Deps) (*Traders, error) {
	t := &Traders{
		seed: seed, rate: rate, deps: deps, random: rand.New(rand.NewPCG(seed, 0)),
		idle: make(chan *account, accounts), daring: make(chan *account, daredevils),
		providing: make(chan *account, providers), winning: make(chan *account, 1),
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
	actions := time.NewTicker(time.Second / time.Duration(t.rate))
	defer actions.Stop()
	tight := time.NewTicker(tightEvery)
	defer tight.Stop()
	steps := time.NewTicker(provideEvery)
	defer steps.Stop()
	bets := time.NewTicker(winEvery)
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
