package bench

import (
	"context"
	"encoding/hex"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/demo"
	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/planner"
	"perpkeeper/services/sender"
	"perpkeeper/test/rig"
	"perpkeeper/test/rig/follow"
)

// keeper is a whole keeper beside a chain, in this process.
type keeper struct {
	rig.Exchange
	t       *testing.T
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
	inFlight int           // the limit of liquidations in flight, held; 0 = the shipped settings
	remote   *remoteSigner // has the keys; nil for keys of the keeper's own
}

// liquidationBurn has a liquidation of the devnet take what it takes on the original contracts, 2.4 million gas.
const liquidationBurn = 1_151_000

func newKeeper(t *testing.T, f fleet) *keeper {
	t.Helper()
	cfg := devnet.DefaultConfig()
	cfg.PriceInterval, cfg.LiquidationBurn = time.Second, liquidationBurn
	cfg.PaymentLane = 5 // as on BSC from its Jenner fork on
	x := rig.NewExchange(t, cfg)
	d := x.Devnet
	k := &keeper{t: t, Exchange: x, market: d.Deployment().Markets[0]}
	for _, token := range d.Deployment().Tokens {
		if token.Address == k.market.Index {
			k.index = token
		}
	}
	k.first, _ = d.Prices().Mark(k.index.Address)
	k.first = new(big.Int).Div(k.first, exchange.USD30(1, k.index.Decimals))
	k.price(1000)
	k.serve(rig.Broker(t).Addr(), f)
	return k
}

// price pins the price of the index token at so many thousandths of its first.
func (k *keeper) price(perMille int64) {
	k.t.Helper()
	if err := k.Pin(k.index.Symbol, k.first.Int64()*perMille/1000); err != nil {
		k.t.Fatal(err)
	}
}

// serve runs the four services.
func (k *keeper) serve(brokers string, f fleet) {
	k.t.Helper()
	send := sender.DefaultConfig()
	send.Keeper = wire.Config{ChainID: k.Deployment().ChainID, LogPartitions: 4, JobPartitions: 4}
	k.url = pgtest.URL(k.t)
	send.Kafka.Brokers, send.Postgres.URL, send.Venue = []string{brokers}, secret.MustURL(k.url),
		follow.At(k.Devnet)
	send.Chain.URLs = []secret.URL{secret.MustURL(k.RPC()), secret.MustURL(k.WS())}
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
	k.db = rig.PostgresOf(k.t, send.Postgres)
	rig.Ensure(k.t, rig.Kafka(k.t, send.Kafka), send.Keeper.Topics()...)
	quiet := zerolog.Nop()
	follow.Keeper{Keeper: send.Keeper, Kafka: send.Kafka, Postgres: send.Postgres, Chain: send.Chain,
		Venue: send.Venue}.Run(k.t, k.Devnet, func(string) zerolog.Logger { return quiet })
	rig.Host(k.t, "planner", quiet, func(sh *service.Shell) error { return planner.Start(sh, plan) })
	rig.Host(k.t, "sender", quiet, func(sh *service.Shell) error { return sender.Start(sh, send) })
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
		paid, err := k.Venue.Pay(k.t.Context(), faucet[0].Key, a.Address,
			new(big.Int).Mul(big.NewInt(coins), big.NewInt(1e18)))
		if err != nil {
			k.t.Fatal(err)
		}
		if a.Index == first+count-1 {
			k.must(k.Venue.Wait(k.t.Context(), paid))
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
	k.await("every position is open", func(o demo.Counts) bool { return o.Of["position Active"] == positions })
}

func (k *keeper) must(_ any, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) trade(ctx context.Context, trader devnet.Account, i int64) error {
	const margin = 100_000_000 // a tenth of the size, in USDC of 6 decimals
	if err := k.Equip(ctx, trader, k.market.Short, 1e12); err != nil {
		return err
	}
	created, err := k.Venue.CreateOrder(ctx, trader.Key, exchange.OrderRequest{
		Market: k.market.Address, Collateral: k.market.Short, Type: exchange.MarketIncrease, IsLong: true,
		SizeUSD: usd(1000), CollateralAmount: big.NewInt(margin - i*1000),
	})
	if err != nil {
		return err
	}
	_, err = k.Venue.Wait(ctx, created)
	return err
}

// usd has 30 decimals.
func usd(dollars int64) *big.Int { return exchange.USD30(dollars*1_000_000, 0) }

// await polls until something is so in the state.
func (k *keeper) await(what string, so func(demo.Counts) bool) {
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
		o, err := demo.Count(ctx, k.db)
		if err != nil {
			k.t.Fatal(err)
		}
		if so(o) {
			return
		}
	}
}
