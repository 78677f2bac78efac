package bench

import (
	"context"
	"encoding/hex"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/devnettest"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service"
	"perpkeeper/services/planner"
	"perpkeeper/services/scanner"
	"perpkeeper/services/sender"
	"perpkeeper/services/statevm"
)

// keeper is a whole keeper beside a chain, in this process.
type keeper struct {
	t       *testing.T
	devnet  *devnet.Devnet
	node    *ethclient.Client
	venue   *exchange.Client
	db      *pg.DB
	url     string // of the database
	index   exchange.Token
	first   *big.Int // price of the index token at the beginning, micro USD
	market  exchange.Market
	traders map[chain.Address]int // the higher, the less margin
	signers map[chain.Address]bool
	asked   atomic.Int64 // orders and requests that flow beside
}

// fleet is what a keeper is made of.
type fleet struct {
	signers int
	// own are signers more, which take orders and requests and nothing else; the others take liquidations alone then.
	own      int
	inFlight int // the limit of liquidations in flight, held; 0 = the shipped settings
	// endpoints makes the addresses at which the keeper finds the devnet; nil for its own two.
	endpoints func(*devnet.Devnet) []secret.URL
	remote    *remoteSigner // has the keys; nil for keys of the keeper's own
}

// liquidationBurn has a liquidation of the devnet take what it takes on the original contracts, 2.4 million gas.
const liquidationBurn = 1_151_000

func newKeeper(t *testing.T, f fleet) *keeper {
	t.Helper()
	b, err := broker.Start(broker.Config{MinSessionTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := devnet.DefaultConfig()
	cfg.Rate, cfg.PriceInterval, cfg.LiquidationBurn = 0, time.Second, liquidationBurn
	cfg.PaymentLane = 5 // as on BSC from its Jenner fork on
	ctx, cancel := context.WithCancel(context.Background())
	d, err := devnettest.Run(ctx, cfg)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = d.Wait() })
	k := &keeper{t: t, devnet: d, market: d.Deployment().Markets[0]}
	if k.node, err = ethclient.Dial(d.RPC()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.node.Close)
	if k.venue, err = exchange.NewClient(t.Context(), k.node, d.Deployment()); err != nil {
		t.Fatal(err)
	}
	for _, token := range d.Deployment().Tokens {
		if token.Address == k.market.Index {
			k.index = token
		}
	}
	k.first, _ = d.Prices().Mark(k.index.Address)
	k.first = new(big.Int).Div(k.first, exchange.USD30(1, k.index.Decimals))
	k.price(1000)
	k.serve(b.Addr(), f)
	return k
}

// price pins the price of the index token at so many thousandths of its first.
func (k *keeper) price(perMille int64) {
	k.t.Helper()
	if err := k.devnet.Pin(k.index.Symbol, k.first.Int64()*perMille/1000); err != nil {
		k.t.Fatal(err)
	}
}

// serve runs the four services.
func (k *keeper) serve(brokers string, f fleet) {
	k.t.Helper()
	at := k.devnet.Deployment().Contracts
	venue := gmx.Config{DataStore: chain.Address(at.DataStore)}
	send := sender.DefaultConfig()
	send.Keeper = wire.Config{ChainID: k.devnet.Deployment().ChainID, LogPartitions: 4, JobPartitions: 4}
	k.url = pgtest.URL(k.t)
	send.Kafka.Brokers, send.Postgres.URL, send.Venue = []string{brokers}, secret.MustURL(k.url), venue
	send.Chain.URLs = []secret.URL{secret.MustURL(k.devnet.RPC()), secret.MustURL(k.devnet.WS())}
	if f.endpoints != nil {
		send.Chain.URLs = f.endpoints(k.devnet)
	}
	if f.inFlight > 0 { // the jump makes the markets volatile
		send.Sender.MaxLiquidations, send.Sender.Volatile.MaxLiquidations = f.inFlight, f.inFlight
	}
	var signers []chain.Address
	accounts, err := devnet.Accounts(devnet.FirstKeeper, uint32(f.signers+f.own))
	k.must(accounts, err)
	for _, a := range accounts {
		signers = append(signers, chain.Address(a.Address))
		send.Signer.DevKeys = append(send.Signer.DevKeys, secret.New(hex.EncodeToString(crypto.FromECDSA(a.Key))))
	}
	if send.Signer.Dev = true; f.remote != nil {
		send.Signer = f.remote.open(k.t, send.Keeper.ChainID, accounts)
	}
	scan := scanner.DefaultConfig()
	scan.Keeper, scan.Chain, scan.Kafka, scan.Venue = send.Keeper, send.Chain, send.Kafka, venue
	scan.Scanner.StartBlock, scan.Scanner.Price.URL = 1, secret.MustURL(k.devnet.Feed())
	vm := statevm.DefaultConfig()
	vm.Keeper, vm.Kafka, vm.Postgres = send.Keeper, send.Kafka, send.Postgres
	plan := planner.DefaultConfig()
	plan.Keeper, plan.Kafka, plan.Postgres, plan.Keeper.Signers = send.Keeper, send.Kafka, send.Postgres, signers
	if f.own > 0 {
		for i, s := range signers {
			lanes := []string{string(job.LiquidationLane)}
			if i >= f.signers {
				lanes = []string{string(job.OrderLane), string(job.MaintenanceLane)}
			}
			plan.Planner.Bindings = append(plan.Planner.Bindings, planner.Binding{Signer: s, Lanes: lanes})
		}
	}
	k.signers = map[chain.Address]bool{}
	for _, s := range signers {
		k.signers[s] = true
	}
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

// accounts are so many of the devnet's that nobody uses, each with coins.
func (k *keeper) accounts(first, count uint32, coins int64) []devnet.Account {
	k.t.Helper()
	faucet, err := devnet.Accounts(devnet.FaucetIndex, 1)
	if err != nil {
		k.t.Fatal(err)
	}
	accounts, err := devnet.Accounts(first, count)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, a := range accounts {
		paid, err := k.venue.Pay(k.t.Context(), faucet[0].Key, a.Address,
			new(big.Int).Mul(big.NewInt(coins), big.NewInt(1e18)))
		if err != nil {
			k.t.Fatal(err)
		}
		if a.Index == first+count-1 {
			k.must(k.venue.Wait(k.t.Context(), paid))
		}
	}
	return accounts
}

// open has so many traders open a position each, all in one market, ten times leveraged, each a little nearer to the
// edge than the one before.
func (k *keeper) open(positions int) {
	k.t.Helper()
	traders := k.accounts(1_000_000, uint32(positions), 1)
	group, ctx := errgroup.WithContext(k.t.Context())
	group.SetLimit(100)
	k.traders = map[chain.Address]int{}
	for i, trader := range traders {
		k.traders[chain.Address(trader.Address)] = i
		group.Go(func() error { return k.trade(ctx, trader, int64(i)) })
	}
	if err := group.Wait(); err != nil {
		k.t.Fatal(err)
	}
	k.await("every position is open", func(o pg.Overview) bool { return o.Positions["Active"] == positions })
}

func (k *keeper) must(_ any, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) trade(ctx context.Context, trader devnet.Account, i int64) error {
	const margin = 100_000_000 // a tenth of the size, in USDC of 6 decimals
	if _, err := k.venue.Mint(ctx, trader.Key, k.market.Short, big.NewInt(1e12)); err != nil {
		return err
	}
	approved, err := k.venue.Approve(ctx, trader.Key, k.market.Short)
	if err != nil {
		return err
	}
	if _, err := k.venue.Wait(ctx, approved); err != nil {
		return err
	}
	created, err := k.venue.CreateOrder(ctx, trader.Key, exchange.OrderRequest{
		Market: k.market.Address, Collateral: k.market.Short, Type: exchange.MarketIncrease, IsLong: true,
		SizeUSD: usd(1000), CollateralAmount: big.NewInt(margin - i*1000),
	})
	if err != nil {
		return err
	}
	_, err = k.venue.Wait(ctx, created)
	return err
}

// usd has 30 decimals.
func usd(dollars int64) *big.Int { return exchange.USD30(dollars*1_000_000, 0) }

// await polls until something is so in the state.
func (k *keeper) await(what string, so func(pg.Overview) bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 15*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("never happened: %s", what)
		}
		o, err := k.db.Overview(ctx)
		if err != nil {
			k.t.Fatal(err)
		}
		if so(o) {
			return
		}
	}
}
