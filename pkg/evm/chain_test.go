package evm_test

import (
	"context"
	"crypto/ecdsa"
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
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/setting/secret"
)

// The sender cache of go-ethereum's chain is a global that never ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"))
}

const hangGuard = 60 * time.Second

// emitter is a contract that, called with 32 bytes, stores them in slot 0 and emits a log with topics 0x2a and those
// bytes. Called with nothing it reverts with deadbeef.
var (
	emitter     = chain.Address{0xe3, 19: 1}
	emitterCode = common.FromHex("3615601657600035" + "6000556000" + "35602a60006000a200" +
		"5b63deadbeef60e01b60005260046000fd")
	emitted = chain.Hash{31: 0x2a}
)

// devnet is a running node with one funded account.
type devnet struct {
	*evmnode.Node
	t     *testing.T
	key   *ecdsa.PrivateKey
	nonce uint64
}

func startDevnet(t *testing.T, cfg evmnode.Config) *devnet {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("funded")))
	if err != nil {
		t.Fatal(err)
	}
	d := &devnet{t: t, key: key}
	cfg.Manual = true
	cfg.Alloc = types.GenesisAlloc{
		common.Address(emitter):     {Code: emitterCode, Balance: new(big.Int)},
		common.Address(d.account()): {Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)},
	}
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
	return d
}

func (d *devnet) account() chain.Address {
	return chain.Address(crypto.PubkeyToAddress(d.key.PublicKey))
}

// sign makes a transaction to the emitter at a price of hundredths of a gwei.
func (d *devnet) sign(nonce uint64, price int64, data []byte) *types.Transaction {
	d.t.Helper()
	to, wei := common.Address(emitter), big.NewInt(price*10_000_000)
	tx, err := types.SignNewTx(d.key, types.LatestSignerForChainID(d.ChainID()), &types.DynamicFeeTx{
		ChainID: d.ChainID(), Nonce: nonce, GasTipCap: wei, GasFeeCap: wei, Gas: 100_000, To: &to, Value: new(big.Int),
		Data: data,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return tx
}

// emit puts a transaction that emits one log into the pool.
func (d *devnet) emit(number byte) *types.Transaction {
	d.t.Helper()
	tx := d.sign(d.nonce, 10, word(number))
	if err := d.SendTransaction(tx); err != nil {
		d.t.Fatal(err)
	}
	d.nonce++
	return tx
}

// emitBlock mines a block of so many transactions, each with a log: the i-th with number i. The pool may put off a
// transaction by a block, so it may take several tries.
func (d *devnet) emitBlock(count byte) {
	d.t.Helper()
	for range 100 {
		for n := range count {
			d.emit(n)
		}
		before := d.Head().Number.Uint64()
		for d.waiting() {
			d.mine(1)
		}
		if d.Head().Number.Uint64() == before+1 {
			return
		}
	}
	d.t.Fatalf("never a block of %d transactions", count)
}

// waiting reports whether a transaction has not been mined yet.
func (d *devnet) waiting() bool {
	d.t.Helper()
	c, err := rpc.DialOptions(d.t.Context(), d.WSURL())
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	mined, err := ethclient.NewClient(c).NonceAt(d.t.Context(), common.Address(d.account()), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return mined < d.nonce
}

func (d *devnet) mine(count uint64) {
	d.t.Helper()
	if err := d.Mine(count); err != nil {
		d.t.Fatal(err)
	}
}

// head is the node's own word on its head.
func (d *devnet) head() chain.BlockRef {
	h := d.Head()
	return chain.BlockRef{
		Number: h.Number.Uint64(), Hash: chain.Hash(h.Hash()), Parent: chain.Hash(h.ParentHash),
		TimeMs: evmnode.MilliTime(h),
	}
}

func (d *devnet) config(urls ...string) evm.Config {
	cfg := evm.DefaultConfig()
	cfg.URLs, cfg.PollInterval = nil, 20*time.Millisecond
	for _, u := range urls {
		cfg.URLs = append(cfg.URLs, secret.MustURL(u))
	}
	return cfg
}

// dial makes a client of the chain id that the devnet and the fake nodes name unless told otherwise.
func dial(t *testing.T, cfg evm.Config) *evm.Client {
	t.Helper()
	c, err := evm.Dial(t.Context(), evmnode.DefaultChainID, cfg, zerolog.New(zerolog.NewTestWriter(t)),
		evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// receive takes the next value of a channel, or fails the test when it looks hung.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(hangGuard):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

func word(number byte) []byte {
	h := chain.Hash{31: number}
	return h[:]
}
