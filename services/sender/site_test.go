package sender

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/scanner"
	"perpkeeper/test/rig"
	"perpkeeper/test/rig/follow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hangGuard ends a wait that would otherwise never end. It is no measure of anything.
const hangGuard = 90 * time.Second

// site is a keeper without a planner and a sender: a chain with an exchange and a price feed, a broker, a database, and
// the pipeline by which the chain becomes state. Tests publish what the planner would, and start senders of their own.
// Sites share nothing but how their chains begin, so tests that are long because they wait for these run side by side.
type site struct {
	rig.Exchange
	t      testing.TB
	cfg    Config
	client *bus.Client
	db     *pg.DB
	market exchange.Market
	trader devnet.Account
}

func newSite(t testing.TB, change ...func(*scanner.Config)) *site {
	t.Helper()
	cfg := devnet.DefaultConfig()
	cfg.BlockTime, cfg.PriceInterval = 150*time.Millisecond, 200*time.Millisecond
	s := &site{t: t, Exchange: rig.NewExchange(t, cfg)}
	s.cfg = s.config(rig.Broker(t).Addr(), pgtest.URL(t))
	s.client, s.db = rig.Kafka(t, s.cfg.Kafka), rig.PostgresOf(t, s.cfg.Postgres)
	rig.Ensure(t, s.client, s.cfg.Keeper.Topics()...)
	follow.Keeper{Keeper: s.cfg.Keeper, Kafka: s.cfg.Kafka, Postgres: s.cfg.Postgres, Chain: s.cfg.Chain,
		Venue: s.cfg.Venue}.Run(t, s.Devnet,
		func(name string) zerolog.Logger { return testLog(t, name, zerolog.WarnLevel) }, change...)
	accounts, err := devnet.Accounts(devnet.FaucetIndex, 1)
	if err == nil {
		s.trader, s.market = accounts[0], s.Deployment().Markets[0]
		err = s.Equip(t.Context(), s.trader, s.market.Short, 1e15)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// config is that of a sender at this site, with no key yet.
func (s *site) config(brokers, database string) Config {
	cfg := DefaultConfig()
	cfg.Keeper = wire.Config{ChainID: s.Deployment().ChainID, LogPartitions: 2, JobPartitions: 2}
	cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout = []string{brokers}, 3*time.Second
	cfg.Postgres.URL = secret.MustURL(database)
	cfg.Chain.URLs = []secret.URL{secret.MustURL(s.RPC())}
	cfg.Chain.PollInterval = 50 * time.Millisecond
	cfg.Venue = follow.At(s.Devnet)
	cfg.Signer.Dev = true
	cfg.Sender.LeaseTTL, cfg.Sender.Cooldown = time.Second, 500*time.Millisecond
	// A shared machine may be slow, and no test is about how fresh is fresh enough.
	cfg.Sender.MaxLag, cfg.Sender.PriceMaxAge = 20*time.Second, 30*time.Second
	cfg.Sender.Fee.LostAfter = 700 * time.Millisecond
	for _, tariff := range []*txm.Tariff{&cfg.Sender.Fee.Liquidation, &cfg.Sender.Fee.Order,
		&cfg.Sender.Fee.Maintenance} {
		tariff.Patience = 10_000 // tests that are about raises say so
	}
	return cfg
}

// testLog shows a log with PERPKEEPER_TEST_LOG set.
func testLog(t testing.TB, name string, level zerolog.Level) zerolog.Logger {
	if os.Getenv("PERPKEEPER_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.NewTestWriter(t)).Level(level).With().Str("service", name).Timestamp().Logger()
}

func (s *site) mined(hash common.Hash, err error) *types.Receipt {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	receipt, err := s.Venue.Wait(s.t.Context(), hash)
	if err != nil {
		s.t.Fatal(err)
	}
	return receipt
}

// dollars are USD with 30 decimals.
func dollars(n int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))
}

// marketOrder creates a long market order over so many dollars, ten times its collateral, and returns its key.
func (s *site) marketOrder(size int64, change ...func(*exchange.OrderRequest)) chain.Hash {
	s.t.Helper()
	r := exchange.OrderRequest{
		Market: s.market.Address, Collateral: s.market.Short, Type: exchange.MarketIncrease, IsLong: true,
		SizeUSD:          dollars(size),
		CollateralAmount: big.NewInt(size * 100_000), // USDC has 6 decimals
	}
	for _, c := range change {
		c(&r)
	}
	key, found := s.Venue.RequestKey(s.mined(s.Venue.CreateOrder(s.t.Context(), s.trader.Key, r)), "OrderCreated")
	if !found {
		s.t.Fatal("no OrderCreated")
	}
	return chain.Hash(key)
}

// keeper returns the n-th account with the keeper roles.
func (s *site) keeper(n int) (address chain.Address, key secret.String) {
	s.t.Helper()
	for _, a := range s.Record().Accounts {
		if a.Purpose == "keeper" {
			if n == 0 {
				return chain.Address(a.Address), secret.New(hex.EncodeToString(a.PrivateKey))
			}
			n--
		}
	}
	s.t.Fatal("the devnet has not that many keepers")
	return address, key
}

// orderJob is what a planner says of an order, once the state has it.
func (s *site) orderJob(key chain.Hash, by chain.Address) job.Job {
	s.t.Helper()
	var row perp.Order
	s.eventually("the order is in the state", func(ctx context.Context) bool {
		found, err := s.db.Order(ctx, key)
		row = found.Row
		return err == nil && found.Known
	})
	updated, _ := row.UpdatedAtTime.Uint64()
	return job.Job{
		ID: job.OrderID(key, row.Changes), Kind: job.Order, Key: key, Account: row.Account, Market: row.Market,
		Collateral: row.InitialCollateralToken,
		IsLong:     row.IsLong, Tokens: s.tokens(), DueSinceMs: row.Birth.TimeMs, ExpiresMs: (updated + 300) * 1000,
		Class: job.ClassMarketOrder, Signer: by,
	}
}

// liquidationJob is what a planner says of the trader's position, once the state has it open.
func (s *site) liquidationJob(by chain.Address) job.Job {
	s.t.Helper()
	account, market, collateral := chain.Address(s.trader.Address), chain.Address(s.market.Address),
		chain.Address(s.market.Short)
	key := perp.PositionKey(account, market, collateral, true)
	var row perp.Position
	head := s.Node().Head().Number.Uint64() // what was executed before is in the row: it is part of the job's id
	s.eventually("the position is in the state", func(ctx context.Context) bool {
		at, err := s.db.Progress(ctx)
		if err != nil || at.Watermark.Number < head {
			return false
		}
		found, err := s.db.Position(ctx, key)
		row = found.Row
		return err == nil && found.Known && row.Status == perp.Active
	})
	return job.Job{
		ID: job.LiquidationID(key, row.Changes), Kind: job.Liquidation, Key: key, Account: account, Market: market,
		Collateral: collateral, IsLong: true,
		Tokens: s.tokens(), DueSinceMs: uint64(time.Now().UnixMilli()), Class: job.ClassLiquidation,
		Ratio:  chain.Pow10(29),
		Signer: by,
	}
}

func (s *site) tokens() (tokens []chain.Address) {
	for _, t := range s.market.PriceTokens() {
		tokens = append(tokens, chain.Address(t))
	}
	return tokens
}

// say publishes jobs as a planner does that has found them in the state as it is.
func (s *site) say(jobs ...job.Job) {
	s.t.Helper()
	producer := s.client.Producer(wire.JobTopic(s.cfg.Keeper.ChainID))
	for _, j := range s.found(jobs...) {
		record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := producer.Produce(s.t.Context(), wire.SignerPartition(j.Signer, s.cfg.Keeper.JobPartitions),
			[]bus.Record{record}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// found are jobs as of the state as it is.
func (s *site) found(jobs ...job.Job) []job.Job {
	s.t.Helper()
	progress, err := s.db.Progress(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	found := slices.Clone(jobs)
	for i := range found {
		found[i].Evidence.Block, found[i].Evidence.Generation = progress.Watermark, uint32(progress.Generation)
	}
	return found
}

// results reads the whole result topic.
func (s *site) results(jobID string) (found []job.Result) {
	s.t.Helper()
	for partition := range s.cfg.Keeper.JobPartitions {
		for _, r := range rig.Records(s.t, s.client, wire.ResultTopic(s.cfg.Keeper.ChainID), partition) {
			m, _, err := wire.Decode(r)
			if err != nil {
				s.t.Fatal(err)
			}
			if result := m.(wire.Result).Result; result.JobID == jobID {
				found = append(found, result)
			}
		}
	}
	return found
}

// result waits for the result of an attempt.
func (s *site) result(jobID string, attempt uint32) (result job.Result) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("attempt %d of %s has a result", attempt, jobID), func(context.Context) bool {
		for _, r := range s.results(jobID) {
			if r.Attempt == attempt {
				result = r
				return true
			}
		}
		return false
	})
	return result
}

// eventually polls until ok, or fails the test when it looks hung.
func (s *site) eventually(what string, ok func(ctx context.Context) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("never happened: %s", what)
		}
	}
}

// nonce is how many transactions of an account are in blocks.
func (s *site) nonce(a chain.Address) uint64 {
	s.t.Helper()
	n, err := s.Client.NonceAt(s.t.Context(), common.Address(a), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// running is a sender process at a site.
type running struct {
	*Sender
	site     *site
	registry *prometheus.Registry
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
}

// sender starts a sender process with keys of its own. Change comes before it runs.
func (s *site) sender(keys []secret.String, change ...func(*Sender)) *running {
	s.t.Helper()
	cfg := s.cfg
	cfg.Signer.DevKeys = keys
	opened, err := signer.Open(cfg.Signer)
	if err != nil {
		s.t.Fatal(err)
	}
	log := testLog(s.t, "sender", zerolog.DebugLevel)
	node, err := evm.Dial(s.t.Context(), cfg.Keeper.ChainID, cfg.Chain, zerolog.Nop(),
		evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := bus.New(cfg.Kafka, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		s.t.Fatal(err)
	}
	db, err := pg.Open(s.t.Context(), cfg.database(), "sender")
	if err != nil {
		s.t.Fatal(err)
	}
	r := &running{site: s, registry: prometheus.NewRegistry(), done: make(chan struct{})}
	r.Sender = New(cfg, log, NewMetrics(r.registry), opened, client, db, node)
	for _, c := range change {
		c(r.Sender)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.err = r.Run(ctx)
		client.Close()
		node.Close()
		db.Close()
	}()
	s.t.Cleanup(r.stop)
	return r
}

// stop asks the sender to end, and demands that it does so without an error.
func (r *running) stop() {
	r.cancel()
	<-r.done
	if r.err != nil && !errors.Is(r.err, context.Canceled) {
		r.site.t.Errorf("the sender ended with %v", r.err)
	}
}
