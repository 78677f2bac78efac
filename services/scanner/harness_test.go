package scanner

import (
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"errors"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// The sender cache of go-ethereum's chain is a global that never ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"))
}

const hangGuard = 3 * time.Minute

// partitions of the log topic; a test may change it for its time, see withPartitions. Tests that run side by side, as
// those do that mostly wait, have them alike.
var partitions = 3

func withPartitions(t *testing.T, n int) {
	t.Helper()
	before := partitions
	partitions = n
	t.Cleanup(func() { partitions = before })
}

var (
	emitter = chain.Address{0xe3, 19: 1}
	store   = chain.Address{0xda, 19: 1}

	// relayCode emits the logs its calldata describes, one after the other: a word with the number of topics (2 to 4),
	// a word with the length of the data, four words of topics, and the data.
	relayCode = common.FromHex("60005b368110600a57005b80602001358082" +
		"60c0016000378160a00135826080013583606001358460400135" +
		"84600087358060021460425760031460" + "4a57a4604d565b50a25050604d565ba3505b0160c0016002" + "56")
	// storeCode answers every function with the word at its first argument, as the DataStore's getters do. Given two
	// words alone it keeps the second under the first, and no event says so.
	storeCode = common.FromHex("366040146013" + "57" + "60043554600052602060" + "00f3" + "5b602035600035" + "5500")
)

// devnet is a running chain with the relay at the emitter's address, and accounts to send from.
type devnet struct {
	*evmnode.Node
	t      testing.TB
	keys   []*ecdsa.PrivateKey
	client *ethclient.Client
}

// accounts are how many have means from the beginning.
const accounts = 3

func startDevnet(t testing.TB) *devnet {
	t.Helper()
	d := withKeys(t)
	alloc := types.GenesisAlloc{
		common.Address(emitter): {Code: relayCode, Balance: new(big.Int)},
		common.Address(store):   {Code: storeCode, Balance: new(big.Int), Storage: map[common.Hash]common.Hash{}},
	}
	for i := range d.keys {
		alloc[common.Address(d.account(i))] = types.Account{Balance: new(big.Int).
			Exp(big.NewInt(10), big.NewInt(20), nil)}
	}
	for at, code := range handlerCodes {
		alloc[common.Address(at)] = types.Account{Code: code, Balance: new(big.Int)}
	}
	for key, word := range stored {
		alloc[common.Address(store)].Storage[common.Hash(key)] = common.Hash(word)
	}
	return d.run(evmnode.Config{Manual: true, Alloc: alloc})
}

// again is another chain that has come as far as this one has, and goes its own way from now on.
func (d *devnet) again(t testing.TB) *devnet {
	t.Helper()
	image, err := d.Image()
	if err != nil {
		t.Fatal(err)
	}
	return withKeys(t).run(evmnode.Config{Manual: true, Image: image})
}

func withKeys(t testing.TB) *devnet {
	t.Helper()
	d := &devnet{t: t}
	for i := range accounts {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i)}))
		if err != nil {
			t.Fatal(err)
		}
		d.keys = append(d.keys, key)
	}
	return d
}

func (d *devnet) run(cfg evmnode.Config) *devnet {
	t := d.t
	t.Helper()
	var err error
	if d.Node, err = evmnode.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Errorf("running the node: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	server, err := rpc.DialContext(t.Context(), d.WSURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	d.client = ethclient.NewClient(server)
	return d
}

// stored are words of the DataStore, in it from the beginning.
var stored = map[chain.Hash]chain.Hash{
	perp.DataStoreKey("SOME_FACTOR", marketOf(1).Hash()): {31: 42},
	accountKey(lostOrder):                                accountOf(7).Hash(),
}

// lostOrder is an order whose creation no scanner has seen.
var lostOrder = chain.Hash{0x10, 0x57}

func accountKey(order chain.Hash) chain.Hash {
	field := perp.BaseKey("ACCOUNT")
	return chain.Keccak256(order[:], field[:])
}

func accountOf(i byte) chain.Address { return chain.Address{0xac, i} }
func marketOf(i byte) chain.Address  { return chain.Address{0x3a, i} }

func (d *devnet) account(i int) chain.Address {
	return chain.Address(crypto.PubkeyToAddress(d.keys[i].PublicKey))
}

// send puts a transaction of an account into the pool.
func (d *devnet) send(from int, to chain.Address, data []byte) chain.Hash {
	d.t.Helper()
	at, wei := common.Address(to), big.NewInt(100_000_000)
	tx, err := types.SignNewTx(d.keys[from], types.LatestSignerForChainID(d.ChainID()), &types.DynamicFeeTx{
		ChainID: d.ChainID(), Nonce: d.nextNonce(from), GasTipCap: wei, GasFeeCap: wei, Gas: 2_000_000, To: &at,
		Value: new(big.Int), Data: data,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.SendTransaction(tx); err != nil {
		d.t.Fatal(err)
	}
	return chain.Hash(tx.Hash())
}

// emit puts a transaction into the pool that leaves the given logs.
func (d *devnet) emit(from int, logs ...chain.Log) chain.Hash {
	d.t.Helper()
	var data []byte
	for _, l := range logs {
		count, length := chain.Hash{31: byte(len(l.Topics))}, chain.Hash{}
		binary.BigEndian.PutUint64(length[24:], uint64(len(l.Data)))
		data = append(append(data, count[:]...), length[:]...)
		for i := range 4 {
			var topic chain.Hash
			if i < len(l.Topics) {
				topic = l.Topics[i]
			}
			data = append(data, topic[:]...)
		}
		data = append(data, l.Data...)
	}
	return d.send(from, emitter, data)
}

func (d *devnet) mine(count uint64) {
	d.t.Helper()
	if err := d.Mine(count); err != nil {
		d.t.Fatal(err)
	}
}

func (d *devnet) reorg(depth uint64, style evmnode.ForkStyle) {
	d.t.Helper()
	if _, err := d.Reorg(depth, style); err != nil {
		d.t.Fatal(err)
	}
}

// trade mines a few blocks with all that matters in them: logs for accounts, markets and everybody, several in one
// transaction; transactions without a log; empty blocks.
func (d *devnet) trade(seed byte) {
	d.t.Helper()
	d.emit(0, orderCreated(seed), marketUpdated(seed), parameterSet(seed))
	d.mine(1)
	d.mine(1)
	d.emit(0, orderExecuted(seed), marketUpdated(seed+1))
	d.emit(1, orderCreated(seed+100))
	d.send(2, chain.Address{0xdd}, nil)
	d.mine(2)
	for i := range d.keys { // the pool may put off a transaction by a block
		for d.nonceOf(i) < d.nextNonce(i) {
			d.mine(1)
		}
	}
}

// nextNonce counts the transactions of an account that are on the chain or wait for it. It is asked for each
// transaction: a fork may have made some vanish and left others waiting, behind a gap.
func (d *devnet) nextNonce(i int) uint64 {
	d.t.Helper()
	nonce, err := d.client.PendingNonceAt(d.t.Context(), common.Address(d.account(i)))
	if err != nil {
		d.t.Fatal(err)
	}
	return nonce
}

// nonceOf is how many transactions of an account are on the chain.
func (d *devnet) nonceOf(i int) uint64 {
	d.t.Helper()
	nonce, err := d.client.NonceAt(d.t.Context(), common.Address(d.account(i)), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return nonce
}

func order(seed byte) chain.Hash { return chain.Hash{0x0d, seed} }

func orderCreated(seed byte) chain.Log {
	return gmxtest.Event(emitter, "OrderCreated", perp.Fields{"key": order(seed), "account": accountOf(seed)})
}

func orderExecuted(seed byte) chain.Log {
	return gmxtest.Event(emitter, "OrderExecuted", perp.Fields{"key": order(seed), "account": accountOf(seed)})
}

// orderResized names the order and no account.
func orderResized(key chain.Hash) chain.Log {
	return gmxtest.Event(emitter, "OrderSizeDeltaAutoUpdated", perp.Fields{"key": key})
}

func marketUpdated(seed byte) chain.Log {
	return gmxtest.Event(emitter, "PoolAmountUpdated", perp.Fields{"market": marketOf(seed)})
}

func parameterSet(seed byte) chain.Log {
	return gmxtest.Event(emitter, "SetUint", perp.Fields{"value": chain.U64(uint64(seed))})
}

func marketListed(seed byte) chain.Log {
	return gmxtest.Event(emitter, "MarketCreated", perp.Fields{"marketToken": marketOf(seed)})
}

// kafka is an embedded broker with the topics of the devnet's chain.
type kafka struct {
	*broker.Broker
	client   *bus.Client
	auditors []*auditor // by partition
}

func startKafka(t testing.TB) *kafka {
	t.Helper()
	return startBroker(t, broker.Config{})
}

func startBroker(t testing.TB, cfg broker.Config) *kafka {
	t.Helper()
	b := rig.BrokerOf(t, cfg)
	k := &kafka{Broker: b, client: newBus(t, b.Addr())}
	k.ensure(t, partitions)
	return k
}

func (k *kafka) ensure(t testing.TB, logPartitions int) {
	t.Helper()
	keeper := wire.Config{ChainID: evmnode.DefaultChainID, LogPartitions: logPartitions, JobPartitions: 1}
	rig.Ensure(t, k.client, keeper.Topics()...)
}

func newBus(t testing.TB, address string) *bus.Client {
	t.Helper()
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{address}
	return rig.Kafka(t, cfg)
}

func testConfig(d *devnet, brokers string) Config {
	cfg := DefaultConfig()
	cfg.Keeper.ChainID, cfg.Keeper.LogPartitions = evmnode.DefaultChainID, partitions
	cfg.Chain.URLs = []secret.URL{secret.MustURL(d.HTTPURL()), secret.MustURL(d.WSURL())}
	cfg.Chain.PollInterval = 20 * time.Millisecond
	cfg.Kafka.Brokers = []string{brokers}
	cfg.Venue.EventEmitter, cfg.Venue.DataStore = emitter, store
	cfg.Scanner.StartBlock = 1
	cfg.Scanner.FirstWords = []perp.Word{{Key: perp.DataStoreKey("SOME_FACTOR", marketOf(1).Hash()),
		Kind: perp.UintWord, Name: "SOME_FACTOR"}}
	return cfg
}

// running is a scanner at work.
type running struct {
	*Scanner
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// start runs a scanner until the test ends or stop is called. The options change it before.
func start(t *testing.T, cfg Config, k *kafka, options ...func(*Scanner)) *running {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
	node, err := evm.Dial(t.Context(), cfg.Keeper.ChainID, cfg.Chain, log, evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Scanner: New(cfg, node, k.client, log, newMetrics(prometheus.NewRegistry())), t: t,
		ended: make(chan struct{})}
	for _, option := range options {
		option(r.Scanner)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.err = r.Run(ctx)
		t.Logf("the scanner ended: %v", r.err)
		node.Close()
	}()
	t.Cleanup(func() { r.stop() })
	return r
}

// stop ends the scanner and returns what it ended with.
func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

// wait waits for the scanner to end by itself.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(hangGuard):
		r.t.Fatal("the scanner does not end")
	}
	return r.err
}

// eventually polls until a condition holds, or fails the test when it looks hung.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened: %s: %v", what, err)
		}
	}
}

var errNotYet = errors.New("not yet")
