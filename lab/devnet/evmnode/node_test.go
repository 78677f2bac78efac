package evmnode

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// emitter is a contract without constructor. Called with 32 bytes it stores them in slot 0 and emits a log with topics
// 0x2a and those bytes; called with nothing it reverts with deadbeef.
var (
	emitter     = common.HexToAddress("0xe317700000000000000000000000000000000001")
	emitterCode = common.FromHex("36156016576000356" + "02a60006000a2600035600055005b63deadbeef60e01b60005260046000fd")
)

const hangGuard = 120 * time.Second

// chainTest is a running node with funded accounts and clients.
type chainTest struct {
	*Node
	t     *testing.T
	keys  []*ecdsa.PrivateKey
	http  *ethclient.Client
	ws    *ethclient.Client
	nonce []uint64
}

func start(t *testing.T, cfg Config, accounts int) *chainTest {
	t.Helper()
	c := &chainTest{t: t, nonce: make([]uint64, accounts)}
	cfg.Alloc = types.GenesisAlloc{emitter: {Code: emitterCode, Balance: new(big.Int)}}
	for i := range accounts {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i), byte(i >> 8)}))
		if err != nil {
			t.Fatal(err)
		}
		c.keys = append(c.keys, key)
		cfg.Alloc[c.account(i)] = types.Account{Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)}
	}
	node, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Node = node
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := node.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	c.http, c.ws = c.dial(node.HTTPURL()), c.dial(node.WSURL())
	return c
}

func (c *chainTest) dial(url string) *ethclient.Client {
	c.t.Helper()
	var opts []rpc.ClientOption
	if strings.HasPrefix(url, "http") {
		transport := &http.Transport{}
		c.t.Cleanup(transport.CloseIdleConnections)
		opts = append(opts, rpc.WithHTTPClient(&http.Client{Transport: transport}))
	}
	client, err := rpc.DialOptions(c.t.Context(), url, opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return ethclient.NewClient(client)
}

func (c *chainTest) account(i int) common.Address { return crypto.PubkeyToAddress(c.keys[i].PublicKey) }

// sign makes a transaction of account i with the given nonce and price in gwei/100.
func (c *chainTest) sign(i int, nonce uint64, price int64, to *common.Address, data []byte) *types.Transaction {
	c.t.Helper()
	wei := new(big.Int).Mul(big.NewInt(price), big.NewInt(10_000_000))
	tx, err := types.SignNewTx(c.keys[i], c.signer, &types.DynamicFeeTx{
		ChainID: c.ChainID(), Nonce: nonce, GasTipCap: wei, GasFeeCap: wei, Gas: 200_000, To: to, Value: new(big.Int),
		Data: data,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return tx
}

// emit sends a transaction of account i that emits one log with the given number.
func (c *chainTest) emit(i int, number int64) *types.Transaction {
	c.t.Helper()
	tx := c.sign(i, c.nonce[i], 10, &emitter, common.BigToHash(big.NewInt(number)).Bytes())
	if err := c.http.SendTransaction(c.t.Context(), tx); err != nil {
		c.t.Fatalf("sending transaction %d of account %d: %v", c.nonce[i], i, err)
	}
	c.nonce[i]++
	return tx
}

func (c *chainTest) mine(count uint64) {
	c.t.Helper()
	if err := c.Mine(count); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chainTest) receipt(hash common.Hash) *types.Receipt {
	c.t.Helper()
	r, err := c.http.TransactionReceipt(c.t.Context(), hash)
	if err != nil {
		c.t.Fatalf("receipt of %s: %v", hash, err)
	}
	return r
}

// eventually polls until ok, or fails the test when it looks hung.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		}
	}
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

func TestTimeFollowsTheClock(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	for range 20 {
		before := uint64(time.Now().UnixMilli())
		c.mine(1)
		after := uint64(time.Now().UnixMilli())
		h := c.Head()
		if ms := MilliTime(h); ms < before || ms > after {
			t.Fatalf("block %v has time %d ms, was built between %d and %d", h.Number, ms, before, after)
		}
		if h.Time != MilliTime(h)/1000 {
			t.Fatalf("block %v has second %d and milliseconds %d", h.Number, h.Time, MilliTime(h))
		}
	}
}

func TestBlocksOfOneSecondShareIt(t *testing.T) {
	c := start(t, Config{BlockTime: 50 * time.Millisecond}, 0)
	eventually(t, "30 blocks", func() bool { return c.Head().Number.Uint64() >= 30 })
	perSecond := map[uint64]int{}
	last := uint64(0)
	for number := range uint64(31) {
		h, err := c.http.HeaderByNumber(t.Context(), new(big.Int).SetUint64(number))
		if err != nil {
			t.Fatal(err)
		}
		if MilliTime(h) < last {
			t.Fatalf("block %d goes back in time: %d after %d", number, MilliTime(h), last)
		}
		last = MilliTime(h)
		perSecond[h.Time]++
	}
	most := 0
	for _, blocks := range perSecond {
		most = max(most, blocks)
	}
	if most < 2 {
		t.Fatalf("no two of 31 blocks share a second: %v", perSecond)
	}
}

func TestPoolErrorsAreThoseOfANode(t *testing.T) {
	c := start(t, Config{Manual: true}, 2)
	mined := c.emit(0, 1)
	c.mine(1)
	pending := c.emit(0, 2)
	poor, _ := crypto.GenerateKey()
	c.keys = append(c.keys, poor)
	huge, err := types.SignNewTx(c.keys[1], c.signer, &types.LegacyTx{Gas: MaxTxGas + 1, GasPrice: big.NewInt(1e9),
		To: &emitter})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		tx         *types.Transaction
	}{
		{"mined bytes again", "nonce too low: next nonce 1, tx nonce 0", mined},
		{"other bytes, old nonce", "nonce too low: next nonce 1, tx nonce 0", c.sign(0, 0, 10, &emitter, []byte{1})},
		{"same bytes", "already known", pending},
		{"same nonce, no higher price", "replacement transaction underpriced", c.sign(0, 1, 10, &emitter, []byte{1})},
		{"same nonce, 9 % more", "replacement transaction underpriced", c.sign(0, 1, 10*109/100, &emitter, []byte{1})},
		{"below the floor", "transaction gas price below minimum", c.sign(1, 0, 4, &emitter, []byte{1})},
		{"no money", "insufficient funds for gas * price + value", c.sign(2, 0, 10, &emitter, []byte{1})},
		{"too much gas", "transaction gas limit too high (cap: 16777216, tx: 16777217)", huge},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, client := range []*ethclient.Client{c.http, c.ws} {
				if err := client.SendTransaction(t.Context(), test.tx); err == nil ||
					!strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}

// What does not fit into a block waits for the next one, each sender's transactions in order.
func TestFullBlocksCarryOver(t *testing.T) {
	c := start(t, Config{Manual: true, GasLimit: 450_000}, 4)
	var sent []common.Hash
	for i := range int64(12) {
		sent = append(sent, c.emit(int(i%4), i).Hash())
	}
	blocks := 0
	for ; c.pending() > 0 && blocks < 12; blocks++ {
		c.mine(1)
		if h := c.Head(); h.GasUsed > h.GasLimit || h.GasUsed == 0 {
			t.Errorf("block %v used %d of %d gas", h.Number, h.GasUsed, h.GasLimit)
		}
	}
	if blocks < 2 {
		t.Errorf("everything went into %d block", blocks)
	}
	for _, hash := range sent {
		if r := c.receipt(hash); r.Status != types.ReceiptStatusSuccessful {
			t.Errorf("transaction %s failed", hash)
		}
	}
}

// pending counts the executable transactions of the pool.
func (c *chainTest) pending() int {
	c.t.Helper()
	if err := c.pool.Sync(); err != nil {
		c.t.Fatal(err)
	}
	executable, _ := c.pool.Stats()
	return executable
}

func TestStallAndResume(t *testing.T) {
	c := start(t, Config{BlockTime: 20 * time.Millisecond}, 0)
	eventually(t, "first blocks", func() bool { return c.Head().Number.Uint64() > 3 })
	c.Stall(time.Hour)
	head := c.Head().Hash()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for range 10 {
		<-ticks.C
	}
	if number, err := c.http.BlockNumber(t.Context()); err != nil || c.Head().Hash() != head {
		t.Fatalf("stalled chain went on to %d (%v)", number, err)
	}
	c.Resume()
	eventually(t, "blocks after the stall", func() bool { return c.Head().Hash() != head })
}

func TestFinalityTags(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	tags := func() [3]uint64 {
		var out [3]uint64
		for i, tag := range []rpc.BlockNumber{rpc.LatestBlockNumber, rpc.SafeBlockNumber, rpc.FinalizedBlockNumber} {
			h, err := c.http.HeaderByNumber(t.Context(), big.NewInt(tag.Int64()))
			if err != nil {
				t.Fatal(err)
			}
			out[i] = h.Number.Uint64()
		}
		return out
	}
	for i, want := range [][3]uint64{{0, 0, 0}, {1, 0, 0}, {2, 1, 0}, {3, 2, 1}} {
		if i > 0 {
			c.mine(1)
		}
		if got := tags(); got != want {
			t.Errorf("latest, safe, finalized: got %v, want %v", got, want)
		}
	}
	c.StallFinality()
	c.mine(5)
	if got, want := tags(), [3]uint64{8, 2, 1}; got != want {
		t.Errorf("stalled: got %v, want %v", got, want)
	}
	c.Resume()
	if got, want := tags(), [3]uint64{8, 7, 6}; got != want {
		t.Errorf("resumed: got %v, want %v", got, want)
	}
}

// Whoever sees a receipt sees its block: the state of latest has the transaction in it.
func TestReceiptsComeWithTheirBlock(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	latest := rpc.BlockNumberOrHashWithNumber(rpc.LatestBlockNumber)
	for i := range uint64(150) {
		tx := c.emit(0, 1)
		var mining sync.WaitGroup
		mining.Go(func() {
			if err := c.Mine(1); err != nil {
				t.Errorf("mining: %v", err)
			}
		})
		for (chainAPI{c.Node}).GetTransactionReceipt(tx.Hash()) == nil && !t.Failed() {
			runtime.Gosched() // the moment is short: nothing slower would see it
		}
		next, err := stateAPI{c.Node}.GetTransactionCount(c.account(0), &latest)
		mining.Wait()
		if err != nil || uint64(next) != i+1 {
			t.Fatalf("the receipt of nonce %d is there, and latest says that %d are used, %v", i, next, err)
		}
	}
}
