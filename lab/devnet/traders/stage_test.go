package traders

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/exchange"
)

// stage is an exchange on a simulated chain that makes a block every few milliseconds, with walking prices and one
// keeper that executes all it can.
type stage struct {
	t      *testing.T
	sim    *simulated.Backend
	chain  *flakyChain
	client *exchange.Client
	marks  *walkingMarks
	keys   map[string]*ecdsa.PrivateKey
	log    zerolog.Logger
	// mining is held while the chain is being reorganised.
	mining sync.Mutex

	mu     sync.Mutex
	counts map[string]int
}

const (
	blockTime  = 60 * time.Millisecond
	keeperTime = 150 * time.Millisecond
	priceTime  = 40 * time.Millisecond
	// hangGuard ends a test that waits for something that does not come; it asserts nothing about speed.
	hangGuard = 4 * time.Minute
)

// flakyChain refuses to serve while it is down.
type flakyChain struct {
	simulated.Client
	down atomic.Bool
}

var errDown = errors.New("the node does not answer")

func (c *flakyChain) SendTransaction(ctx context.Context, tx *types.Transaction) error {
	if c.down.Load() {
		return errDown
	}
	return c.Client.SendTransaction(ctx, tx)
}

func (c *flakyChain) BalanceAt(ctx context.Context, account common.Address, block *big.Int) (*big.Int, error) {
	if c.down.Load() {
		return nil, errDown
	}
	return c.Client.BalanceAt(ctx, account, block)
}

// walkingMarks are prices that move by up to 0.04 % at a time.
type walkingMarks struct {
	mu     sync.Mutex
	random *rand.Rand
	prices map[common.Address]exchange.Price
	walks  map[common.Address]bool
}

func (m *walkingMarks) Mark(token common.Address) (low, high *big.Int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.prices[token]
	return p.Min, p.Max
}

func (m *walkingMarks) step() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for token := range m.walks {
		p, move := m.prices[token], m.random.Int64N(9)-4
		m.prices[token] = exchange.Price{Min: scale(p.Min, move), Max: scale(p.Max, move)}
	}
}

func (m *walkingMarks) shock(token common.Address, points int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.prices[token]
	m.prices[token] = exchange.Price{Min: scale(p.Min, points), Max: scale(p.Max, points)}
	return nil
}

func testKey(seed string) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(seed)))
	if err != nil {
		panic(err)
	}
	return key
}

func addressOf(key *ecdsa.PrivateKey) common.Address {
	return crypto.PubkeyToAddress(key.PublicKey)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, log: testLog(t), keys: map[string]*ecdsa.PrivateKey{}, counts: map[string]int{}}
	genesis := types.GenesisAlloc{}
	for _, name := range []string{"deployer", "reporter", "keeper", "faucet", "manager"} {
		s.keys[name] = testKey(name)
		genesis[addressOf(s.keys[name])] = types.Account{Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)}
	}
	s.sim = simulated.NewBackend(genesis, func(_ *node.Config, eth *ethconfig.Config) {
		config := *params.AllDevChainProtocolChanges
		config.ShanghaiTime, config.CancunTime, config.PragueTime, config.OsakaTime, config.BogotaTime = nil, nil, nil,
			nil, nil
		config.BlobScheduleConfig = nil
		eth.Genesis.Config = &config
	})
	t.Cleanup(func() {
		if err := s.sim.Close(); err != nil {
			t.Errorf("closing the simulated chain: %v", err)
		}
	})
	s.chain = &flakyChain{Client: s.sim.Client()}
	s.every(blockTime, s.mine)

	cfg := exchange.DefaultConfig(s.keys["deployer"], s.keys["reporter"], []exchange.Keeper{
		{Address: addressOf(s.keys["keeper"]), Roles: []string{exchange.OrderKeeper, exchange.LiquidationKeeper,
			exchange.FrozenOrderKeeper, exchange.AdlKeeper}},
	})
	cfg.GlvManager = addressOf(s.keys["manager"])
	d, err := exchange.Deploy(t.Context(), s.chain, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.client, err = exchange.NewClient(t.Context(), s.chain, d); err != nil {
		t.Fatal(err)
	}
	s.marks = &walkingMarks{random: rand.New(rand.NewPCG(1, 2)), prices: map[common.Address]exchange.Price{},
		walks: map[common.Address]bool{}}
	for i, token := range d.Tokens {
		price := exchange.USD30(cfg.Tokens[i].FirstPriceMicroUSD, token.Decimals)
		s.marks.prices[token.Address] = exchange.Price{Min: price, Max: scale(price, 1)}
		s.marks.walks[token.Address] = token.Symbol != "USDC"
	}
	delete(s.marks.walks, mustToken(t, d, "USDC"))
	k := newKeeper(s, d)
	s.every(priceTime, s.marks.step)
	s.every(keeperTime, k.round)
	return s
}

func mustToken(t *testing.T, d *exchange.Deployment, symbol string) common.Address {
	t.Helper()
	token, err := d.TokenBySymbol(symbol)
	if err != nil {
		t.Fatal(err)
	}
	return token.Address
}

// every does something again and again until the test ends.
func (s *stage) every(interval time.Duration, do func()) {
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				do()
			}
		}
	})
}

func (s *stage) mine() {
	s.mining.Lock()
	defer s.mining.Unlock()
	s.sim.Commit()
}

// reorg replaces the last blocks of the chain by one more block than they were; their transactions go back to the pool.
// The node takes none meanwhile, because it forks only while its pool is empty.
func (s *stage) reorg(depth int64) {
	s.t.Helper()
	s.mining.Lock()
	defer s.mining.Unlock()
	s.chain.down.Store(true)
	defer s.chain.down.Store(false)
	s.until("an empty pool", func() bool {
		s.sim.Commit()
		return s.fork(depth) == nil
	})
	for range depth + 1 {
		s.sim.Commit()
	}
}

func (s *stage) fork(depth int64) error {
	head, err := s.chain.HeaderByNumber(s.t.Context(), nil)
	if err != nil {
		return err
	}
	ancestor, err := s.chain.HeaderByNumber(s.t.Context(), new(big.Int).Sub(head.Number, big.NewInt(depth)))
	if err != nil {
		return err
	}
	return s.sim.Fork(ancestor.Hash())
}

func (s *stage) count(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name] += n
}

func (s *stage) counted(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// until waits for a condition.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	guard := time.After(hangGuard)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-guard:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("waited in vain for %s; counted %v", what, s.counts)
		case <-ticker.C:
		}
	}
}

// trade runs traders; stop ends them and reports what Run returned.
func (s *stage) trade(cfg Config) (traders *Traders, stop func()) {
	s.t.Helper()
	traders, err := New(cfg, Deps{
		Client: s.client, Faucet: s.keys["faucet"], Marks: s.marks, GlvManager: s.keys["manager"], Shock: s.marks.shock,
		Log: s.log,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- traders.Run(ctx) }()
	return traders, func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("traders ended with %v", err)
		}
	}
}
