package evmnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/legacypool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/pebble"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

// Node is one chain with its transaction pool and JSON-RPC server. All methods may be called from any goroutine.
type Node struct {
	cfg    Config
	db     ethdb.Database
	chain  *core.BlockChain
	pool   *txpool.TxPool
	states states // for whoever reads them; blocks are built on states of their own
	signer types.Signer
	faults faults
	feed   feed
	// What clients see as latest; moves only when a block or a whole fork is in place.
	head     atomic.Pointer[types.Header]
	finality finality
	// The least price that is taken, in wei.
	minGasPrice atomic.Uint64
	// Percent of a block's gas that is kept for payments.
	paymentLane atomic.Uint64

	writing   sync.Mutex   // Held by whoever changes the chain.
	admission sync.RWMutex // Held shared while a transaction enters the pool, alone while a fork empties it.
	forks     uint64       // Guarded by writing.
	anchor    uint64       // Guarded by writing; no fork replaces this block or an older one.
	stalled   time.Time    // Guarded by writing; no blocks before this moment.
	forgotten sync.Map     // Hashes (common.Hash) of blocks that a Drop fork took away.

	listener net.Listener
	server   *rpc.Server
	sockets  sockets
	close    func() error
}

// New makes the chain and opens its listener, so that Addr is known; requests are answered and blocks are made once Run
// is called. A Node that is never run must be closed with Close.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configuring the chain: %w", err)
	}
	db, err := openStore(cfg)
	if err != nil {
		return nil, err
	}
	chain, err := core.NewBlockChain(db, genesis(cfg), engine{}, chainOptions(cfg.Dir))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the chain: %w", err), db.Close())
	}
	if err := cfg.Image.suits(cfg); err != nil {
		chain.Stop()
		return nil, errors.Join(err, db.Close())
	}
	pool, err := txpool.New(cfg.MinGasPrice, chain, []txpool.SubPool{legacypool.New(poolConfig(cfg), chain)})
	if err != nil {
		chain.Stop()
		return nil, errors.Join(fmt.Errorf("making the transaction pool: %w", err), db.Close())
	}
	n := &Node{cfg: cfg, db: db, chain: chain, pool: pool, server: rpc.NewServer()}
	n.signer = types.LatestSigner(chain.Config())
	n.states.db = state.NewMPTDatabase(chain.TrieDB(), chain.CodeDB())
	n.head.Store(chain.CurrentBlock())
	n.minGasPrice.Store(cfg.MinGasPrice)
	n.paymentLane.Store(cfg.PaymentLane)
	n.goOn(cfg.Image)
	n.close = sync.OnceValue(n.shutDown)
	if err := n.register(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if n.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Listen); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the node's listener: %w (devnet.rpc)", err), n.Close())
	}
	return n, nil
}

// genesis is nil for a chain that has one.
func genesis(cfg Config) *core.Genesis {
	if cfg.Image != nil {
		return nil
	}
	zero := new(big.Int)
	g := &core.Genesis{
		Config: &params.ChainConfig{
			ChainID: new(big.Int).SetUint64(cfg.ChainID), HomesteadBlock: zero, EIP150Block: zero, EIP155Block: zero,
			EIP158Block:    zero,
			ByzantiumBlock: zero, ConstantinopleBlock: zero, PetersburgBlock: zero, IstanbulBlock: zero,
			MuirGlacierBlock: zero,
			BerlinBlock:      zero, LondonBlock: zero, Ethash: new(params.EthashConfig),
		},
		ExtraData:  []byte("perpkeeper devnet"),
		GasLimit:   cfg.GasLimit,
		Difficulty: difficulty,
		BaseFee:    zero,
		Alloc:      maps.Clone(cfg.Alloc),
	}
	var clock types.Header
	setMilliTime(&clock, uint64(time.Now().UnixMilli()))
	g.Timestamp, g.Mixhash = clock.Time, clock.MixDigest
	return g
}

// storeCache is how much of what is in a folder is kept in memory, by the store and by the tries each, megabytes.
const storeCache = 128

// openStore opens what blocks and states are kept in, and puts into it what the chain begins with.
func openStore(cfg Config) (ethdb.Database, error) {
	db, err := emptyStore(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := cfg.Image.into(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// emptyStore is memory, or an empty folder.
func emptyStore(dir string) (ethdb.Database, error) {
	if dir == "" {
		return rawdb.NewMemoryDatabase(), nil
	}
	if old, err := os.ReadDir(dir); err == nil && len(old) > 0 {
		return nil, fmt.Errorf("opening the chain's folder: %s is not empty, and no chain is continued (devnet.dir)",
			dir)
	}
	store, err := pebble.New(dir, storeCache, 0, "", false)
	if err != nil {
		return nil, fmt.Errorf("opening the chain's folder: %w (devnet.dir)", err)
	}
	return rawdb.NewDatabase(store), nil
}

// chainOptions keeps every state, for calls in the past and forks of any depth, and no caches where the database is
// memory already. (Calls share what they read, see states.)
func chainOptions(dir string) *core.BlockChainConfig {
	opts := core.DefaultConfig().WithStateScheme(rawdb.HashScheme).WithArchive(true)
	opts.TrieCleanLimit, opts.SnapshotLimit = 0, 0
	if dir != "" {
		opts.TrieCleanLimit = storeCache
	}
	opts.NoPrefetch = true
	return opts
}

// poolConfig has BSC's limits of transactions in one sender's queue.
func poolConfig(cfg Config) legacypool.Config {
	pool := legacypool.DefaultConfig
	pool.Journal = ""
	pool.PriceLimit = cfg.MinGasPrice
	pool.AccountSlots, pool.AccountQueue = 200, 200
	return pool
}

// Addr is host:port of the listener.
func (n *Node) Addr() string { return n.listener.Addr().String() }

// HTTPURL is the JSON-RPC address for single requests.
func (n *Node) HTTPURL() string { return "http://" + n.Addr() }

// WSURL is the JSON-RPC address for subscriptions.
func (n *Node) WSURL() string { return "ws://" + n.Addr() }

// ChainID is the configured chain id.
func (n *Node) ChainID() *big.Int { return n.chain.Config().ChainID }

// Head is the header clients see as latest. The caller must not change it.
func (n *Node) Head() *types.Header { return n.head.Load() }

// Register adds the exported methods of a value under a namespace, beside the node's own; it must come before Run.
// Faults hit them like any other.
func (n *Node) Register(namespace string, methods any) error {
	return n.server.RegisterName(namespace, methods)
}

// Attach connects within the process: no port, no faults, and answers also before Run. The caller closes it.
func (n *Node) Attach() *rpc.Client { return rpc.DialInProc(n.server) }

// Run answers requests and makes blocks until ctx ends or a block cannot be made, then closes the node. It returns nil
// when ctx ended.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	web := &http.Server{Handler: http.HandlerFunc(n.serveHTTP), ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := web.Serve(n.listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serving JSON-RPC: %w", err))
		}
	})
	if !n.cfg.Manual {
		wg.Go(func() {
			if err := n.produce(ctx); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	failed := context.Cause(ctx)
	if errors.Is(failed, context.Canceled) || errors.Is(failed, context.DeadlineExceeded) {
		failed = nil
	}
	closed := web.Close()
	wg.Wait()
	return errors.Join(failed, closed, n.Close())
}

// Close frees what New took. It is called by Run at its end; calling it again does nothing.
func (n *Node) Close() error { return n.close() }

func (n *Node) shutDown() error {
	n.server.Stop()
	n.sockets.closeAll()
	n.sockets.serving.Wait()
	if n.listener != nil {
		_ = n.listener.Close() // The HTTP server has closed it already if it ran.
	}
	err := n.pool.Close()
	n.chain.Stop()
	return errors.Join(err, n.db.Close())
}

// produce makes a block at every tick of the block time. Ticks missed under load are not made up for, as on a real
// chain.
func (n *Node) produce(ctx context.Context) error {
	tick := time.NewTicker(n.cfg.BlockTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := n.produceUnlessStalled(); err != nil {
				return err
			}
		}
	}
}

func (n *Node) produceUnlessStalled() error {
	n.writing.Lock()
	defer n.writing.Unlock()
	if time.Now().Before(n.stalled) {
		return nil
	}
	return n.extend()
}

// extend puts one block on the head. The caller holds writing.
func (n *Node) extend() error {
	parent := n.chain.CurrentBlock()
	block, err := n.build(parent, nextMilliTime(parent), nil, n.poolCandidates())
	if err != nil {
		return err
	}
	if _, err := n.chain.SetCanonical(block); err != nil {
		return fmt.Errorf("going on to block %d: %w", block.Number(), err)
	}
	n.announce([]*types.Header{block.Header()})
	return nil
}

// announce makes the chain's head visible and tells the subscribers. The caller holds writing.
func (n *Node) announce(heads []*types.Header) {
	n.head.Store(n.chain.CurrentBlock())
	n.feed.publish(heads)
}

// Mine makes count blocks now, stalled or not. The first of them has room for every transaction that was sent before
// the call.
func (n *Node) Mine(count uint64) error {
	n.writing.Lock()
	defer n.writing.Unlock()
	for i := range count {
		if pending, queued := n.pool.Stats(); i == 0 || pending+queued > 0 { // an empty one has nothing to notice
			if err := n.pool.Sync(); err != nil {
				return fmt.Errorf("waiting for the transaction pool: %w", err)
			}
		}
		if err := n.extend(); err != nil {
			return err
		}
	}
	return nil
}

// Anchor makes the present head the oldest block that forks grow from, so that what was set up so far cannot be undone.
// At first that is the genesis block.
func (n *Node) Anchor() {
	n.writing.Lock()
	defer n.writing.Unlock()
	n.anchor = n.chain.CurrentBlock().Number.Uint64()
}

// Stall stops the head for d; requests are still answered. A later call replaces an earlier one.
func (n *Node) Stall(d time.Duration) {
	n.writing.Lock()
	defer n.writing.Unlock()
	n.stalled = time.Now().Add(d)
}

// Resume ends a stall of the head and of finality.
func (n *Node) Resume() {
	n.Stall(0)
	n.finality.release()
}

// StallFinality keeps `safe` and `finalized` where they are until Resume.
func (n *Node) StallFinality() {
	number := n.Head().Number.Uint64()
	n.finality.hold(lagging(number, n.cfg.SafeLag), lagging(number, n.cfg.FinalizedLag))
}

// SetMinGasPrice changes the least price, in wei, at which transactions are taken. The pool forgets those that pay
// less, as the pools of a chain do whose blocks are full of dearer ones.
func (n *Node) SetMinGasPrice(wei uint64) {
	n.minGasPrice.Store(wei)
	n.pool.SetGasTip(new(big.Int).SetUint64(wei))
}

// SendTransaction puts a signed transaction into the pool. Errors are those of go-ethereum's pool, with its texts.
func (n *Node) SendTransaction(tx *types.Transaction) error {
	if tx.Gas() > MaxTxGas {
		return fmt.Errorf("%w (cap: %d, tx: %d)", core.ErrGasLimitTooHigh, MaxTxGas, tx.Gas())
	}
	n.admission.RLock()
	defer n.admission.RUnlock()
	return n.pool.Add([]*types.Transaction{tx}, true)[0]
}

// blockLogs returns the logs of a block in order, with all derived fields.
func (n *Node) blockLogs(hash common.Hash) []*types.Log {
	var logs []*types.Log
	for _, receipt := range n.chain.GetReceiptsByHash(hash) {
		logs = append(logs, receipt.Logs...)
	}
	return logs
}
