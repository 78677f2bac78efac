// Package rig has the parts that a keeper stands on, for tests that put one together in their own process. Each part
// ends with its test, which fails if a part cannot begin.
package rig

import (
	"context"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/devnettest"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
)

// Seed decides what is done and when; it is printed, and KEEPER_SEED repeats a run as far as its timing can be.
func Seed(tb testing.TB) (n uint64) {
	tb.Helper()
	n = rand.Uint64() //nolint:gosec // it has to be repeatable, not secret
	if text := os.Getenv("KEEPER_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Logf("KEEPER_SEED=%d", n)
	return n
}

// Broker is an embedded broker of one node, whose groups notice at once that a member is gone.
func Broker(tb testing.TB) *broker.Broker {
	tb.Helper()
	return BrokerOf(tb, broker.Config{MinSessionTimeout: time.Millisecond})
}

// BrokerOf is a broker as a configuration has it.
func BrokerOf(tb testing.TB, cfg broker.Config) *broker.Broker {
	tb.Helper()
	b, err := broker.Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Close)
	return b
}

// Kafka is a client of a broker.
func Kafka(tb testing.TB, cfg bus.Config) *bus.Client {
	tb.Helper()
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

// Ensure makes topics as an operator does.
func Ensure(tb testing.TB, client *bus.Client, topics ...wire.Topic) {
	tb.Helper()
	if err := client.Ensure(tb.Context(), bus.Specs(topics...)); err != nil {
		tb.Fatal(err)
	}
}

// Records are all that a partition of a topic holds.
func Records(tb testing.TB, client *bus.Client, topic string, partition int) (all []bus.Record) {
	tb.Helper()
	first, end, err := client.Bounds(tb.Context(), topic, partition)
	if err != nil {
		tb.Fatal(err)
	}
	for reader := client.Reader(topic, partition, first); reader.Offset() < end; {
		r, err := reader.Next(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// Postgres is a pool of connections to a database.
func Postgres(tb testing.TB, url string) *pg.DB {
	tb.Helper()
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(url)
	return PostgresOf(tb, cfg)
}

// PostgresOf is Postgres as a configuration has it.
func PostgresOf(tb testing.TB, cfg pg.Config) *pg.DB {
	tb.Helper()
	db, err := pg.Open(tb.Context(), cfg, "rig")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}

// Node is a client of the endpoints of a configuration.
func Node(tb testing.TB, chainID uint64, cfg evm.Config) *evm.Client {
	tb.Helper()
	node, err := evm.Dial(tb.Context(), chainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(node.Close)
	return node
}

// Host runs a service.
func Host(tb testing.TB, name string, log zerolog.Logger, start func(*service.Shell) error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx, service.Options{Name: name, Log: log}, start) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("%s: %v", name, err)
		}
	})
}

// Exchange is a devnet with the venue's contracts, and somebody who may trade there.
type Exchange struct {
	*devnet.Devnet
	Client *ethclient.Client
	Venue  *exchange.Client
}

// Devnet is a chain with the venue's contracts.
func Devnet(tb testing.TB, cfg devnet.Config) *devnet.Devnet {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d, err := devnettest.Run(ctx, cfg)
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cancel()
		if err := d.Wait(); err != nil {
			tb.Errorf("the devnet ended with %v", err)
		}
	})
	return d
}

// NewExchange starts a devnet without traders of its own.
func NewExchange(tb testing.TB, cfg devnet.Config) (x Exchange) {
	tb.Helper()
	cfg.Rate = 0
	x.Devnet = Devnet(tb, cfg)
	var err error
	if x.Client, err = ethclient.Dial(x.RPC()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(x.Client.Close)
	if x.Venue, err = exchange.NewClient(tb.Context(), x.Client, x.Deployment()); err != nil {
		tb.Fatal(err)
	}
	return x
}

// Equip gives an account so much of a token, in its smallest units, and lets the exchange take it.
func (x Exchange) Equip(ctx context.Context, a devnet.Account, token common.Address, amount int64) error {
	if _, err := x.Venue.Mint(ctx, a.Key, token, big.NewInt(amount)); err != nil {
		return err
	}
	approved, err := x.Venue.Approve(ctx, a.Key, token)
	if err == nil {
		_, err = x.Venue.Wait(ctx, approved)
	}
	return err
}
