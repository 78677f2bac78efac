package hammer

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service"
	planning "perpkeeper/services/planner"
	"perpkeeper/services/scanner"
	"perpkeeper/services/statevm"
)

// NON-1, NON-2, NON-13, NON-14: the same on a real EVM, with real orders, found by the real planner in a state that
// comes from the chain.
func TestSendersOnEVM(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("set KEEPER_LONG=1")
	}
	m := newMarketplace(t, size(t, 10_000))
	processes := m.senders(senders)
	began := time.Now()
	m.disturbUntil(processes, 8*time.Second, "the orders", m.trade)
	took := time.Since(began)
	m.await("the ends", m.settled(true))
	for _, p := range processes {
		p.Stop()
	}
	m.report(processes, fmt.Sprintf("%d orders in %s (%.0f/s)", m.orders, took.Round(time.Second),
		float64(m.orders)/took.Seconds()), m.auditOrders())
}

// marketplace is a devnet with a whole keeper but for its senders, and a trader who places orders.
type marketplace struct {
	*site
	devnet *devnet.Devnet
	chain  *ethclient.Client
	venue  *exchange.Client
	trader devnet.Account
	market exchange.Market

	orders int
	placed []common.Hash // the transactions that placed them
}

func newMarketplace(t *testing.T, orders int) *marketplace {
	t.Helper()
	m := &marketplace{orders: orders, devnet: startDevnet(t)}
	d := m.devnet.Deployment()
	m.site = &site{rig: openRig(t), keeper: wire.Config{ChainID: d.ChainID, LogPartitions: 2,
		JobPartitions: senders}}
	m.openKafka(t)
	for _, a := range m.devnet.Record().Accounts {
		if a.Purpose == "keeper" {
			m.signer, m.key = chain.Address(a.Address), hex.EncodeToString(a.PrivateKey)
			break
		}
	}
	m.rpc, m.throughRPC = newProxy(t, m.devnet.RPC())
	at := d.Contracts
	m.venueSettings = []string{"PERPKEEPER_VENUE_DATA_STORE=" + at.DataStore.Hex()}
	m.runKeeper()
	m.openMarket()
	return m
}

func startDevnet(t *testing.T) *devnet.Devnet {
	t.Helper()
	cfg := devnet.DefaultConfig()
	cfg.Rate, cfg.BlockTime, cfg.PriceInterval = 0, 300*time.Millisecond, 300*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	d, err := devnet.Start(ctx, cfg, zerolog.Nop())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = d.Wait()
	})
	return d
}

// runKeeper starts scanner, statevm and planner, which nobody disturbs.
func (m *marketplace) runKeeper() {
	m.t.Helper()
	at := m.devnet.Deployment().Contracts
	venue := gmx.Config{DataStore: chain.Address(at.DataStore)}
	scan := scanner.DefaultConfig()
	scan.Keeper, scan.Kafka, scan.Venue, scan.Chain.URLs = m.keeper, m.kafka, venue,
		[]secret.URL{secret.MustURL(m.devnet.RPC())}
	scan.Chain.PollInterval = 100 * time.Millisecond
	scan.Scanner.StartBlock, scan.Scanner.Price.URL = 1, secret.MustURL(m.devnet.Feed())
	vm := statevm.DefaultConfig()
	vm.Keeper, vm.Kafka, vm.Postgres.URL = m.keeper, m.kafka, secret.MustURL(m.url)
	plan := planning.DefaultConfig()
	plan.Keeper, plan.Kafka, plan.Postgres.URL, plan.Keeper.Signers = m.keeper, m.kafka, secret.MustURL(m.url),
		[]chain.Address{m.signer}
	m.host("scanner", func(sh *service.Shell) error { return scanner.Start(sh, scan) })
	m.host("statevm", func(sh *service.Shell) error { return statevm.Start(sh, vm) })
	m.host("planner", func(sh *service.Shell) error { return planning.Start(sh, plan) })
}

// host runs a service until the test ends.
func (m *marketplace) host(name string, start func(*service.Shell) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx, service.Options{Name: name, Log: zerolog.Nop()}, start) }()
	m.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Errorf("%s: %v", name, err)
		}
	})
}

// openMarket gives a trader means and permissions.
func (m *marketplace) openMarket() {
	m.t.Helper()
	ctx := m.t.Context()
	must := func(err error) {
		if err != nil {
			m.t.Helper()
			m.t.Fatal(err)
		}
	}
	var err error
	m.chain, err = ethclient.Dial(m.devnet.RPC())
	must(err)
	m.t.Cleanup(m.chain.Close)
	m.venue, err = exchange.NewClient(ctx, m.chain, m.devnet.Deployment())
	must(err)
	accounts, err := devnet.Accounts(devnet.FaucetIndex, 1)
	must(err)
	m.trader, m.market = accounts[0], m.devnet.Deployment().Markets[0]
	mint, err := m.venue.Mint(ctx, m.trader.Key, m.market.Short, big.NewInt(1e15))
	must(err)
	approve, err := m.venue.Approve(ctx, m.trader.Key, m.market.Short)
	must(err)
	for _, hash := range []common.Hash{mint, approve} {
		_, err = m.venue.Wait(ctx, hash)
		must(err)
	}
}

// trade places orders while there are few to execute, and returns what is missing, for await.
func (m *marketplace) trade(ctx context.Context) (missing string) {
	executed, err := m.chain.NonceAt(ctx, common.Address(m.signer), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	if m.late() && len(m.placed) < m.orders {
		m.t.Errorf("the time is up: %d of %d orders were placed", len(m.placed), m.orders)
		m.orders = len(m.placed)
	}
	const most = 200
	for allowed := m.allowed(m.orders); len(m.placed) < allowed && len(m.placed) < int(executed)+most; {
		hash, err := m.venue.CreateOrder(ctx, m.trader.Key, exchange.OrderRequest{
			Market: m.market.Address, Collateral: m.market.Short, Type: exchange.MarketIncrease, IsLong: true,
			SizeUSD:          new(big.Int).Mul(big.NewInt(100), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)),
			CollateralAmount: big.NewInt(20_000_000), // USDC has 6 decimals
		})
		if err != nil {
			m.t.Fatal(err)
		}
		m.placed = append(m.placed, hash)
	}
	if len(m.placed) == m.orders && int(executed) >= m.orders {
		return ""
	}
	return fmt.Sprintf("%d of %d orders placed, %d nonces spent", len(m.placed), m.orders, executed)
}

// auditOrders demands of the chain that each order was placed once and executed by one transaction, which succeeded,
// and that there is no other; and of the rows that they know exactly those.
func (m *marketplace) auditOrders() (terms int64) {
	m.t.Helper()
	ctx, open := context.Background(), map[common.Hash]bool{}
	for _, hash := range m.placed {
		receipt, err := m.venue.Wait(ctx, hash)
		if err != nil {
			m.t.Fatal(err)
		}
		key, found := m.venue.RequestKey(receipt, "OrderCreated")
		if !found {
			m.t.Fatalf("%s placed no order", hash)
		}
		open[key] = true
	}
	spent := uint64(0)
	last, err := m.chain.BlockNumber(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	signer := types.LatestSignerForChainID(new(big.Int).SetUint64(m.keeper.ChainID))
	for n := uint64(1); n <= last; n++ {
		block, err := m.chain.BlockByNumber(ctx, new(big.Int).SetUint64(n))
		if err != nil {
			m.t.Fatal(err)
		}
		for _, tx := range block.Transactions() {
			if from, err := types.Sender(signer, tx); err == nil && from == common.Address(m.signer) {
				m.auditTransaction(ctx, tx, spent, open)
				spent++
			}
		}
	}
	if len(open) > 0 {
		m.t.Errorf("%d orders were never executed", len(open))
	}
	var next, rows, unspent, bad uint64
	m.ask(`SELECT next_nonce, fencing_token FROM keeper.signer_lease WHERE signer = $1`, []any{m.signer[:]}, &next,
		&terms)
	m.ask(
		`SELECT count(*), count(*) FILTER (WHERE state <> 'CONSUMED') FROM keeper.signer_nonce_allocation
			WHERE signer = $1`, []any{m.signer[:]}, &rows, &unspent)
	m.ask(`SELECT count(*) FROM keeper.tx_intent WHERE nonce IS NOT NULL AND state <> 'FINAL_OK'`, nil, &bad)
	if next != spent || rows != spent || unspent+bad != 0 {
		m.t.Errorf("%d nonces were spent; the next one is %d, %d are stored, %d of them not consumed, %d intents "+
			"did not end well", spent, next, rows, unspent, bad)
	}
	return terms
}

// auditTransaction takes the order of an execution off the list of open ones.
func (m *marketplace) auditTransaction(ctx context.Context, tx *types.Transaction, nonce uint64,
	open map[common.Hash]bool) {
	m.t.Helper()
	receipt, err := m.chain.TransactionReceipt(ctx, tx.Hash())
	if err != nil {
		m.t.Fatal(err)
	}
	if tx.Nonce() != nonce || receipt.Status != types.ReceiptStatusSuccessful || len(tx.Data()) < 4+32 {
		m.t.Errorf("transaction %s with nonce %d stands in the place of %d, with status %d and %d bytes of data",
			tx.Hash(), tx.Nonce(), nonce, receipt.Status,
			len(tx.Data()))
		return
	}
	key := common.BytesToHash(tx.Data()[4:36])
	if !open[key] {
		m.t.Errorf("nonce %d executes %s, which is done or never was", nonce, key)
	}
	delete(open, key)
}
