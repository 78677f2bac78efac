package devnet

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/lab/devnet/pricefeed"
	"perpkeeper/lab/devnet/traders"
)

// walks says how far the price of a token may move at a report, in basis points; tokens that are not here are stable.
var walks = map[string]int64{"WETH": 4, "WBTC": 3, "SOL": 5}

// spread of every walking price from min to max, in basis points.
const spread = 2

// Devnet is a running devnet. All methods may be called from any goroutine.
type Devnet struct {
	node    *evmnode.Node
	feed    *pricefeed.Feed
	traders *traders.Traders // Nil if nobody trades.
	record  atomic.Pointer[Record]
	cfg     Config
	chain   *ethclient.Client // Within the process: untouched by faults.
	cast    cast
	group   *errgroup.Group
	// upgrade is held while the deployer changes the exchange; former is what the last upgrade left, until it is
	// retired.
	upgrade sync.Mutex
	former  *exchange.Deployment
	users   *exchange.Client // Of the traders; nil if nobody trades.
}

// Start brings up a devnet that runs until ctx ends or one of its parts fails; Wait tells which. When Start returns,
// the exchange is deployed, has liquidity, and can be reached at the addresses of Record.
func Start(ctx context.Context, cfg Config, log zerolog.Logger) (*Devnet, error) {
	return bringUp(ctx, cfg, log, nil)
}

func bringUp(ctx context.Context, cfg Config, log zerolog.Logger, from *Origin) (*Devnet, error) {
	began := time.Now()
	d, err := newDevnet(cfg, from)
	if err != nil {
		return nil, err
	}
	if err := d.open(ctx, cfg, log, from); err != nil {
		return nil, errors.Join(err, d.discard())
	}
	d.run(ctx, cfg)
	log.Info().Str("rpc", d.RPC()).Str("ws", d.WS()).Str("feed", d.Feed()).
		Uint64("chain_id", cfg.ChainID).Str("contracts", string(d.Deployment().Version)).
		Stringer("event_emitter", d.Deployment().Contracts.EventEmitter).Dur("took_ms", time.Since(began)).
		Msg("devnet is up")
	return d, nil
}

// newDevnet makes the accounts and the chain, and runs nothing.
func newDevnet(cfg Config, from *Origin) (*Devnet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the devnet: %w", err)
	}
	d := &Devnet{cfg: cfg}
	var err error
	if d.cast, err = newCast(); err != nil {
		return nil, err
	}
	if d.node, err = evmnode.New(nodeConfig(cfg, d.cast, from)); err != nil {
		return nil, err
	}
	d.chain = ethclient.NewClient(d.node.Attach())
	return d, nil
}

// discard frees what newDevnet took.
func (d *Devnet) discard() error {
	d.chain.Close()
	return d.node.Close()
}

func nodeConfig(cfg Config, accounts cast, from *Origin) evmnode.Config {
	node := evmnode.Config{
		ChainID: cfg.ChainID, BlockTime: cfg.BlockTime, GasLimit: cfg.GasLimit,
		PaymentLane: cfg.PaymentLane, Listen: cfg.RPC, Dir: cfg.Dir, Seed: cfg.Seed, Alloc: accounts.alloc(),
	}
	if from != nil {
		node.Image = from.chain
	}
	return node
}

// venue is the exchange that a configuration wants.
func (d *Devnet) venue(cfg Config) (exchange.Config, error) {
	venue := exchange.DefaultConfig(d.cast.deployer.Key, d.cast.feedSigner.Key, d.cast.exchangeKeepers())
	venue.GlvManager = d.cast.glvManager.Address
	venue.Version = contracts.Version(cfg.Contracts)
	percent, err := cfg.liquidationPercent()
	if err != nil {
		return venue, err
	}
	venue.Parameters.LiquidationRatioFactor = new(big.Int).
		Mul(big.NewInt(percent), new(big.Int).Exp(big.NewInt(10), big.NewInt(28), nil))
	venue.Parameters.LiquidationBurn = int64(cfg.LiquidationBurn)
	return venue, nil
}

// deploy puts the exchange on the chain, where no fork can undo it.
func (d *Devnet) deploy(ctx context.Context, venue exchange.Config) (*exchange.Deployment, error) {
	deployment, err := exchange.Deploy(ctx, eager{d.chain, d.node}, venue)
	if err == nil {
		d.node.Anchor()
	}
	return deployment, err
}

// open deploys the exchange, unless the chain begins with it, and makes everything that can be reached from outside.
func (d *Devnet) open(ctx context.Context, cfg Config, log zerolog.Logger, from *Origin) error {
	venue, err := d.venue(cfg)
	if err != nil {
		return err
	}
	deployment := from.exchange()
	if deployment == nil {
		if deployment, err = d.deploy(ctx, venue); err != nil {
			return err
		}
	}
	d.record.Store(&Record{Deployment: *deployment, Mnemonic: mnemonic, Accounts: d.cast.record()})
	if d.feed, err = pricefeed.New(d.feedConfig(cfg, venue)); err != nil {
		return err
	}
	if err := errors.Join(d.publish(cfg.Host), d.hire(ctx, cfg, log)); err != nil {
		return errors.Join(err, d.feed.Close())
	}
	return nil
}

// hire makes the traders; a rate of 0 wants none.
func (d *Devnet) hire(ctx context.Context, cfg Config, log zerolog.Logger) error {
	if cfg.Rate == 0 {
		return nil
	}
	var err error
	if d.users, err = exchange.NewClient(ctx, d.chain, d.Deployment()); err != nil {
		return fmt.Errorf("making traders: %w", err)
	}
	d.traders, err = traders.New(cfg.Seed, cfg.Rate, traders.Deps{
		Client: d.users, Faucet: d.cast.faucet.Key, Marks: d.feed, GlvManager: d.cast.glvManager.Key,
		Shock: d.feed.Shock, Log: log,
	})
	return err
}

func (d *Devnet) publish(host string) (err error) {
	record := d.record.Load()
	for _, address := range []struct {
		into *string
		from string
	}{{&record.RPCURL, d.node.HTTPURL()}, {&record.WSURL, d.node.WSURL()}, {&record.FeedURL, d.feed.URL()}} {
		if *address.into, err = at(address.from, host); err != nil {
			return err
		}
	}
	return d.node.Register("devnet", control{d})
}

func (d *Devnet) feedConfig(cfg Config, venue exchange.Config) pricefeed.Config {
	feed := pricefeed.Config{
		Provider: d.Deployment().Contracts.OracleProvider, Interval: cfg.PriceInterval, Seed: cfg.Seed,
		Listen: cfg.Feed,
		Sign: func(token common.Address, low, high *big.Int, second uint64) []byte {
			return exchange.SignReport(d.cast.feedSigner.Key, d.node.ChainID(), token,
				exchange.Price{Min: low, Max: high}, second)
		},
	}
	for i, spec := range venue.Tokens {
		token := pricefeed.Token{
			Address: d.Deployment().Tokens[i].Address,
			Price:   exchange.USD30(spec.FirstPriceMicroUSD, spec.Decimals), Stride: walks[spec.Symbol],
		}
		if token.Stride > 0 {
			token.Spread = spread
		}
		feed.Tokens = append(feed.Tokens, token)
	}
	return feed
}

// run starts the parts. When one ends, all do.
func (d *Devnet) run(ctx context.Context, cfg Config) {
	d.group, ctx = errgroup.WithContext(ctx)
	d.group.Go(func() error {
		defer d.chain.Close()
		return d.node.Run(ctx)
	})
	d.group.Go(func() error { return d.feed.Run(ctx) })
	if d.traders != nil {
		d.group.Go(func() error { return d.traders.Run(ctx) })
	}
	if cfg.ShockEvery > 0 {
		d.group.Go(func() error { return d.shake(ctx, cfg.ShockEvery, cfg.Seed) })
	}
}

// Wait returns when everything has stopped: nil if the context of Start ended, otherwise what failed.
func (d *Devnet) Wait() error { return d.group.Wait() }

// eager is the chain for a deployment before blocks come by themselves: who asks for a receipt that is not there makes
// a block.
type eager struct {
	*ethclient.Client
	node *evmnode.Node
}

// TransactionReceipt implements bind.DeployBackend.
func (e eager) TransactionReceipt(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	receipt, err := e.Client.TransactionReceipt(ctx, hash)
	if !errors.Is(err, ethereum.NotFound) {
		return receipt, err
	}
	if err := e.node.Mine(1); err != nil {
		return nil, err
	}
	return e.Client.TransactionReceipt(ctx, hash)
}
