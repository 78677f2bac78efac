package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"math/big"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/devnet"
	"perpkeeper/services/devnet/exchange"
	"perpkeeper/services/planner"
	"perpkeeper/services/scanner"
	"perpkeeper/services/sender"
	"perpkeeper/services/statevm"
)

// LIQ-6: positions that all cross in one tick, from the jump of the price to the last of them liquidated: a whole
// keeper with four signers and its shipped limits, real blocks of 450 ms. The curve is what the limits of what is
// pending make of it, as they follow what the chain takes. KEEPER_LONG=1, some minutes; KEEPER_POSITIONS and
// KEEPER_SIGNERS change the size, KEEPER_IN_FLIGHT holds the limit of liquidations.
func TestDrain(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: set KEEPER_LONG=1")
	}
	k := newKeeper(t, setting("KEEPER_SIGNERS", 4), setting("KEEPER_IN_FLIGHT", 0))
	positions := setting("KEEPER_POSITIONS", 1000)
	k.open(positions)
	began := time.Now()
	k.price(903) // per mille: ten times leveraged, a little of the margin is left
	curve := k.liquidated(positions)
	for _, share := range []int{1, 10, 25, 50, 75, 90, 100} {
		t.Logf("%3d %% of %d liquidated %.1f s after the jump", share, positions,
			curve[max(1, share*positions/100)-1].Sub(began).Seconds())
	}
	t.Logf("%.1f a second", float64(positions)/curve[positions-1].Sub(began).Seconds())
	if inOrder := k.inOrder(); inOrder < 0.9 {
		t.Errorf("%.1f %% of the pairs of liquidations were taken in the order of their margins", 100*inOrder)
	} else {
		t.Logf("%.1f %% of the pairs of liquidations of a signer were taken in the order of their margins", 100*inOrder)
	}
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// keeper is a whole keeper beside a chain, in this process.
type keeper struct {
	t       *testing.T
	devnet  *devnet.Devnet
	db      *pg.DB
	url     string // of the database
	index   exchange.Token
	first   *big.Int // price of the index token at the beginning, micro USD
	market  exchange.Market
	traders map[chain.Address]int // the higher, the less margin
}

func newKeeper(t *testing.T, signers, inFlight int) *keeper {
	t.Helper()
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := devnet.DefaultConfig()
	cfg.Rate, cfg.PriceInterval = 0, time.Second
	ctx, cancel := context.WithCancel(context.Background())
	d, err := devnet.Start(ctx, cfg, zerolog.Nop())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = d.Wait() })
	k := &keeper{t: t, devnet: d, market: d.Deployment().Markets[0]}
	for _, token := range d.Deployment().Tokens {
		if token.Address == k.market.Index {
			k.index = token
		}
	}
	k.first, _ = d.Prices().Mark(k.index.Address)
	k.first = new(big.Int).Div(k.first, exchange.USD30(1, k.index.Decimals))
	k.price(1000)
	k.serve(b.Addr(), signers, inFlight)
	return k
}

// price pins the price of the index token at so many thousandths of its first.
func (k *keeper) price(perMille int64) {
	k.t.Helper()
	if err := k.devnet.Pin(k.index.Symbol, k.first.Int64()*perMille/1000); err != nil {
		k.t.Fatal(err)
	}
}

// serve runs the four services. At most so many liquidations are in flight, or as many as shipped settings allow for 0.
func (k *keeper) serve(brokers string, keys, inFlight int) {
	k.t.Helper()
	at := k.devnet.Deployment().Contracts
	venue := gmx.Config{
		EventEmitter: chain.Address(at.EventEmitter), DataStore: chain.Address(at.DataStore),
		OrderHandler:       chain.Address(at.OrderHandler),
		LiquidationHandler: chain.Address(at.LiquidationHandler), DepositHandler: chain.Address(at.DepositHandler),
		WithdrawalHandler: chain.Address(at.WithdrawalHandler),
	}
	send := sender.DefaultConfig()
	send.Keeper = wire.Config{ChainID: k.devnet.Deployment().ChainID, LogPartitions: 4, JobPartitions: 4}
	k.url = pgtest.URL(k.t)
	send.Kafka.Brokers, send.Postgres.URL, send.Venue = []string{brokers}, secret.MustURL(k.url), venue
	send.Chain.URLs = []secret.URL{secret.MustURL(k.devnet.RPC()), secret.MustURL(k.devnet.WS())}
	send.Signer.Dev = true
	if inFlight > 0 { // the jump makes the markets nervous
		send.Sender.MaxLiquidations, send.Sender.Nervous.MaxLiquidations = inFlight, inFlight
	}
	var signers []chain.Address
	for _, a := range k.devnet.Record().Accounts {
		if a.Purpose == "keeper" && len(signers) < keys {
			signers, send.Signer.DevKeys = append(signers, chain.Address(a.Address)),
				append(send.Signer.DevKeys, secret.New(hex.EncodeToString(a.PrivateKey)))
		}
	}
	scan := scanner.DefaultConfig()
	scan.Keeper, scan.Chain, scan.Kafka, scan.Venue = send.Keeper, send.Chain, send.Kafka, venue
	scan.Scanner.StartBlock, scan.Scanner.Price.URL, scan.Scanner.Signers = 1, secret.MustURL(k.devnet.Feed()), signers
	vm := statevm.DefaultConfig()
	vm.Keeper, vm.Kafka, vm.Postgres, vm.Venue.EventEmitter = send.Keeper, send.Kafka, send.Postgres, venue.EventEmitter
	plan := planner.DefaultConfig()
	plan.Keeper, plan.Kafka, plan.Postgres, plan.Planner.Signers = send.Keeper, send.Kafka, send.Postgres, signers
	k.prepare(send)
	k.host("scanner", func(sh *service.Shell) error { return scanner.Start(sh, scan) })
	k.host("statevm", func(sh *service.Shell) error { return statevm.Start(sh, vm) })
	k.host("planner", func(sh *service.Shell) error { return planner.Start(sh, plan) })
	k.host("sender", func(sh *service.Shell) error { return sender.Start(sh, send) })
}

func (k *keeper) prepare(cfg sender.Config) {
	k.t.Helper()
	client, err := bus.New(cfg.Kafka, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		k.t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ensure(k.t.Context(), bus.Specs(cfg.Keeper.Topics()...)); err != nil {
		k.t.Fatal(err)
	}
	if k.db, err = pg.Open(k.t.Context(), cfg.Postgres, "bench"); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(k.db.Close)
}

// host runs a service until the test ends.
func (k *keeper) host(name string, start func(*service.Shell) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx, service.Options{Name: name, Log: zerolog.Nop()}, start) }()
	k.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Errorf("%s: %v", name, err)
		}
	})
}

// open has so many traders open a position each, all in one market, ten times leveraged, each a little nearer to the
// edge than the one before.
func (k *keeper) open(positions int) {
	k.t.Helper()
	ctx := k.t.Context()
	node, err := ethclient.Dial(k.devnet.RPC())
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(node.Close)
	venue, err := exchange.NewClient(ctx, node, k.devnet.Deployment())
	if err != nil {
		k.t.Fatal(err)
	}
	faucet, err := devnet.Accounts(devnet.FaucetIndex, 1)
	if err != nil {
		k.t.Fatal(err)
	}
	traders, err := devnet.Accounts(1_000_000, uint32(positions))
	if err != nil {
		k.t.Fatal(err)
	}
	var paid common.Hash
	for _, trader := range traders {
		if paid, err = venue.Pay(ctx, faucet[0].Key, trader.Address, big.NewInt(1e18)); err != nil {
			k.t.Fatal(err)
		}
	}
	k.must(venue.Wait(ctx, paid))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(100)
	k.traders = map[chain.Address]int{}
	for i, trader := range traders {
		k.traders[chain.Address(trader.Address)] = i
		group.Go(func() error { return k.trade(ctx, venue, trader, int64(i)) })
	}
	if err := group.Wait(); err != nil {
		k.t.Fatal(err)
	}
	k.await("every position is open", func(o pg.Overview) int { return o.Positions["Active"] }, positions)
}

func (k *keeper) must(_ any, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) trade(ctx context.Context, venue *exchange.Client, trader devnet.Account, i int64) error {
	const size, margin = 1000, 100_000_000 // USD, and a tenth of it in USDC of 6 decimals
	if _, err := venue.Mint(ctx, trader.Key, k.market.Short, big.NewInt(1e12)); err != nil {
		return err
	}
	approved, err := venue.Approve(ctx, trader.Key, k.market.Short)
	if err != nil {
		return err
	}
	if _, err := venue.Wait(ctx, approved); err != nil {
		return err
	}
	usd := new(big.Int).Mul(big.NewInt(size), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))
	created, err := venue.CreateOrder(ctx, trader.Key, exchange.OrderRequest{
		Market: k.market.Address, Collateral: k.market.Short, Type: exchange.MarketIncrease, IsLong: true, SizeUSD: usd,
		CollateralAmount: big.NewInt(margin - i*1000),
	})
	if err != nil {
		return err
	}
	_, err = venue.Wait(ctx, created)
	return err
}

// await polls until a count is reached, and returns when each was.
func (k *keeper) await(what string, count func(pg.Overview) int, want int) (at []time.Time) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 15*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for len(at) < want {
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("never happened: %s (%d of %d)", what, len(at), want)
		}
		o, err := k.db.Overview(ctx)
		if err != nil {
			k.t.Fatal(err)
		}
		for now := time.Now(); len(at) < count(o); {
			at = append(at, now)
		}
	}
	return at
}

func (k *keeper) liquidated(positions int) []time.Time {
	k.t.Helper()
	return k.await("every position is liquidated", func(o pg.Overview) int { return o.Liquidations["Executed"] },
		positions)
}

// inOrder is which part of the pairs of a signer's liquidations, as they were claimed, has the one with less margin
// first. The pairs are compared by the margin they were opened with: their ratios move while they wait, all of them
// together.
func (k *keeper) inOrder() float64 {
	k.t.Helper()
	conn, err := pgx.Connect(k.t.Context(), k.url)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(k.t.Context(),
		`SELECT signer, account FROM keeper.tx_intent WHERE kind = 'liquidation' AND nonce IS NOT NULL ORDER BY signer, nonce`)
	if err != nil {
		k.t.Fatal(err)
	}
	claimed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Signer, Account []byte }])
	if err != nil {
		k.t.Fatal(err)
	}
	var right, all float64
	for i, a := range claimed {
		for _, b := range claimed[i+1:] {
			if bytes.Equal(a.Signer, b.Signer) {
				all++
				if k.traders[chain.Address(a.Account)] > k.traders[chain.Address(b.Account)] {
					right++
				}
			}
		}
	}
	return right / max(1, all)
}
