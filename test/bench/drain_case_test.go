package bench

import (
	"context"
	"math/big"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/demo"
	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
)

// flow has orders and deposits in another market asked for in turn, so many a second, until the test ends.
func (k *keeper) flow(perSecond int) {
	k.t.Helper()
	ctx, market := k.t.Context(), k.Deployment().Markets[1]
	users := k.accounts(2_000_000, 40, 1000)
	for _, u := range users {
		k.must(nil, k.Equip(ctx, u, market.Short, 1e12))
	}
	ctx, stop := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	k.t.Cleanup(func() { stop(); asking.Wait() })
	asking.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				asking.Go(func() {
					if k.ask(ctx, users[i%len(users)], market, i%2 == 0) == nil {
						k.asked.Add(1)
					}
				})
			case <-ctx.Done():
				return
			}
		}
	})
	first := time.NewTimer(10 * time.Second) // so that they flow when the price jumps
	defer first.Stop()
	<-first.C
}

// ask asks for an order or a deposit.
func (k *keeper) ask(ctx context.Context, u devnet.Account, m exchange.Market, order bool) error {
	if order {
		_, err := k.Venue.CreateOrder(ctx, u.Key, exchange.OrderRequest{Market: m.Address, Collateral: m.Short,
			Type: exchange.MarketIncrease, IsLong: true, SizeUSD: usd(1000), CollateralAmount: big.NewInt(500e6)})
		return err
	}
	_, err := k.Venue.CreateDeposit(ctx, u.Key, exchange.DepositRequest{Market: m, ShortAmount: big.NewInt(100e6)})
	return err
}

// stallFinality holds finality until the time is over.
func (k *keeper) stallFinality(how time.Duration) {
	k.Node().StallFinality()
	timer := time.AfterFunc(how, k.Resume)
	k.t.Cleanup(func() { timer.Stop() })
}

// nonceOf names a transaction of a signer whatever its bytes are.
type nonceOf struct {
	signer chain.Address
	nonce  uint64
}

// firstSent is when each number was first broadcast, as the sender has noted it.
func (k *keeper) firstSent() map[nonceOf]time.Time {
	k.t.Helper()
	conn, err := pgx.Connect(k.t.Context(), k.url)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(k.t.Context(), `SELECT signer, nonce, created_at FROM keeper.signed_tx WHERE seq = 1`)
	if err != nil {
		k.t.Fatal(err)
	}
	at := map[nonceOf]time.Time{}
	var signer []byte
	var nonce uint64
	var created time.Time
	if _, err := pgx.ForEachRow(rows, []any{&signer, &nonce, &created}, func() error {
		at[nonceOf{chain.Address(signer), nonce}] = created
		return nil
	}); err != nil {
		k.t.Fatal(err)
	}
	return at
}

// prices logs how often prices were raised, and what was paid.
func (k *keeper) prices(d *drained) (raised int64) {
	k.t.Helper()
	conn, err := pgx.Connect(k.t.Context(), k.url)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var most int64
	if err := conn.QueryRow(k.t.Context(), `SELECT count(*) FILTER (WHERE seq > 1), max(cap) FROM keeper.signed_tx
		WHERE created_at > $1`, d.jump).Scan(&raised, &most); err != nil {
		k.t.Fatal(err)
	}
	k.t.Logf("%d replacements; the highest price offered was %.2f gwei", raised, float64(most)/1e9)
	return raised
}

// flood has each of so many traders ask for an order that is due and that the venue refuses for now: its feature is
// disabled. All of them wait at the signers.
func (k *keeper) flood(orders uint32) {
	k.t.Helper()
	ctx, market := k.t.Context(), k.Deployment().Markets[1]
	deployer, err := devnet.Accounts(devnet.DeployerIndex, 1)
	k.must(deployer, err)
	off, err := k.Venue.SetBool(ctx, deployer[0].Key, "EXECUTE_ORDER_FEATURE_DISABLED", true,
		k.Deployment().Contracts.OrderHandler, big.NewInt(int64(exchange.LimitIncrease)))
	k.must(off, err)
	k.must(k.Venue.Wait(ctx, off))
	traders, err := devnet.Accounts(1_000_000, orders) // they have coins of their own; see [keeper.open]
	k.must(traders, err)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(100)
	for _, trader := range traders {
		group.Go(func() error {
			created, err := k.Venue.CreateOrder(ctx, trader.Key, exchange.OrderRequest{Market: market.Address,
				Collateral: market.Short, Type: exchange.LimitIncrease, IsLong: true, SizeUSD: usd(1000),
				CollateralAmount: big.NewInt(500e6), TriggerPrice: usd(1e9)})
			if err == nil {
				_, err = k.Venue.Wait(ctx, created)
			}
			return err
		})
	}
	k.must(nil, group.Wait())
	k.await("every order waits at a signer", func(demo.Counts) bool { return k.waiting() == int(orders) })
}

func (k *keeper) waiting() (queued int) {
	k.must(nil, k.db.Pool().QueryRow(k.t.Context(),
		`SELECT count(*) FROM keeper.tx_intent WHERE state = 'QUEUED'`).Scan(&queued))
	return queued
}

// keyLost is a keeper one of whose four signers has no key any more from the jump on.
func keyLost() drainCase {
	remote := &remoteSigner{}
	return drainCase{name: "a key is lost", over: 11, fleet: fleet{remote: remote},
		crash: func(*keeper) { remote.lost.Store(true) }}
}
