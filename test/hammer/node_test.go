package hammer

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
)

const (
	// blockRest is the least time between two blocks, idleBlock the longest.
	blockRest, idleBlock = 50 * time.Millisecond, 400 * time.Millisecond
	// price is what the node suggests, in wei per gas; gasUsed is what every transaction burns.
	price, gasUsed = 50_000_000, 100_000
)

// node is a node of a chain with one account that matters. Its pool follows the rules of go-ethereum's: a nonce is
// mined once and in turn, a replacement pays a tenth more, and the errors are worded as there. What is executable is
// mined at once and is final when it is mined.
//
// It executes nothing, so that it does not object to a job that is done twice: it writes down who wanted what.
type node struct {
	chainID *big.Int
	account common.Address
	onBlock func(chain.BlockRef) // called for each block, in order

	mu   sync.Mutex
	head sealed
	// blocks are those with transactions.
	blocks map[common.Hash]sealed
	pool   map[uint64]*types.Transaction
	mined  []inclusion // by nonce
	place  map[common.Hash]uint64
	heard  map[common.Hash]bool // every transaction anybody has ever sent
	jobOf  map[uint64]int       // of every nonce that was ever heard with a job
	nonce  map[int]uint64       // of every job that was ever heard
	wrong  []string             // what must not have happened
	work   chan struct{}
	// pace is the time from one block to the next; 0 = as soon as there is something to mine.
	pace time.Duration
	came map[int]time.Time // when a job was first heard
}

// inclusion is a mined transaction.
type inclusion struct {
	hash  common.Hash
	tx    *types.Transaction
	block uint64
	in    common.Hash
	index int
	job   int // or none
	to    common.Address
	price uint64
}

// none is the job of a payment to oneself.
const none = -1

// startNode starts a node and its blocks. Both end with the test.
func startNode(t *testing.T, chainID uint64, account chain.Address, onBlock func(chain.BlockRef)) (n *node,
	url string) {
	t.Helper()
	n = &node{
		chainID: new(big.Int).SetUint64(chainID), account: common.Address(account), onBlock: onBlock,
		blocks: map[common.Hash]sealed{}, pool: map[uint64]*types.Transaction{},
		place: map[common.Hash]uint64{}, heard: map[common.Hash]bool{}, jobOf: map[uint64]int{},
		nonce: map[int]uint64{}, came: map[int]time.Time{}, work: make(chan struct{}, 1),
		head: sealed{Header: &types.Header{Number: big.NewInt(1_000_000), Difficulty: big.NewInt(1),
			BaseFee: new(big.Int), GasLimit: 100_000_000}},
	}
	n.seal()
	rpcServer := rpc.NewServer()
	if err := rpcServer.RegisterName("eth", eth{n}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rpcServer)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.run(ctx) })
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		running.Wait()
	})
	return n, server.URL
}

// run makes blocks until ctx ends.
func (n *node) run(ctx context.Context) {
	next := time.Now()
	for ctx.Err() == nil {
		if pace := n.paced(); pace > 0 { // what onBlock takes is no part of it
			if next = next.Add(pace); next.Before(time.Now()) {
				next = time.Now()
			}
			wait(ctx, time.Until(next))
			n.onBlock(n.seal())
			continue
		}
		idle := time.NewTimer(idleBlock)
		select {
		case <-n.work:
		case <-idle.C:
		case <-ctx.Done():
		}
		idle.Stop()
		n.onBlock(n.seal())
		wait(ctx, blockRest)
	}
}

// beat has the node make a block each so often, as a chain does.
func (n *node) beat(pace time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pace = pace
}

func (n *node) paced() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pace
}

// wait waits, or returns early when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// seal mines what is executable.
func (n *node) seal() chain.BlockRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := uint64(len(n.mined))
	var txs types.Transactions
	for tx, ready := n.pool[first]; ready; tx, ready = n.pool[first+uint64(len(txs))] {
		txs = append(txs, tx)
		delete(n.pool, tx.Nonce())
	}
	now := uint64(time.Now().UnixMilli())
	h := types.CopyHeader(n.head.Header)
	h.ParentHash, h.Time = n.head.Hash(), now/1000
	h.Number.Add(h.Number, big.NewInt(1))
	h.TxHash, h.ReceiptHash = types.DeriveSha(txs, trie.NewListHasher()),
		types.DeriveSha(receiptsOf(txs), trie.NewListHasher())
	hash := h.Hash()
	for index, tx := range txs {
		n.place[tx.Hash()] = tx.Nonce()
		n.mined = append(n.mined, inclusion{
			hash: tx.Hash(), tx: tx, block: h.Number.Uint64(), in: hash, index: index, job: jobOf(tx), to: *tx.To(),
			price: tx.GasTipCap().Uint64(),
		})
	}
	n.head = sealed{h, now, first, uint64(len(n.mined))}
	if len(txs) > 0 {
		n.blocks[hash] = n.head
	}
	return chain.BlockRef{Number: h.Number.Uint64(), Hash: chain.Hash(hash), Parent: chain.Hash(h.ParentHash),
		TimeMs: now}
}

// sealed is a block: its transactions have the nonces from first up to, but without, end.
type sealed struct {
	*types.Header
	ms         uint64
	first, end uint64
}

// receiptsOf are the receipts as far as a header commits to them.
func receiptsOf(txs types.Transactions) types.Receipts {
	receipts := make(types.Receipts, len(txs))
	for i, tx := range txs {
		receipts[i] = &types.Receipt{Type: tx.Type(), Status: types.ReceiptStatusSuccessful,
			CumulativeGasUsed: gasUsed * uint64(i+1)}
	}
	return receipts
}

// show is a block as clients see it; n.mu is held.
func (n *node) show(b sealed, full bool) map[string]any {
	text, err := json.Marshal(b.Header)
	fields := map[string]any{}
	if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
		panic(err)
	}
	txs := []any{}
	for _, m := range n.mined[b.first:b.end] {
		if full {
			txs = append(txs, n.transaction(m))
		} else {
			txs = append(txs, m.hash)
		}
	}
	fields["hash"], fields["milliTimestamp"], fields["transactions"] = b.Hash(), hexutil.Uint64(b.ms), txs
	return fields
}

func (n *node) transaction(m inclusion) map[string]any {
	text, err := json.Marshal(m.tx)
	fields := map[string]any{}
	if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
		panic(err)
	}
	fields["from"], fields["blockHash"] = n.account, m.in
	fields["blockNumber"], fields["transactionIndex"] = hexutil.Uint64(m.block), hexutil.Uint64(m.index)
	return fields
}

func (n *node) receipt(m inclusion) map[string]any {
	return map[string]any{
		"type": hexutil.Uint64(types.DynamicFeeTxType), "status": hexutil.Uint64(1), "logs": []any{}, "from": n.account,
		"to": m.to, "logsBloom": types.Bloom{},
		"gasUsed": hexutil.Uint64(gasUsed), "cumulativeGasUsed": hexutil.Uint64(gasUsed * (m.index + 1)),
		"effectiveGasPrice": hexutil.Uint64(m.price),
		"transactionHash":   m.hash, "transactionIndex": hexutil.Uint64(m.index),
		"blockNumber": hexutil.Uint64(m.block), "blockHash": m.in,
	}
}

// jobOf reads the market of updateAdlState(address,bool,…), which is the number of the job; see marketOf.
func jobOf(tx *types.Transaction) int {
	data := tx.Data()
	if len(data) < 4+32 {
		return none
	}
	return int(binary.BigEndian.Uint64(data[4+24:]))
}

// marketOf is the market that stands for a job.
func marketOf(job int) (a chain.Address) {
	a[0] = 0xa1
	binary.BigEndian.PutUint64(a[12:], uint64(job))
	return a
}

// take puts a transaction into the pool.
func (n *node) take(tx *types.Transaction) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.receiveTx(tx)
	if tx.Nonce() < uint64(len(n.mined)) {
		return fmt.Errorf("nonce too low: next nonce %d, tx nonce %d", len(n.mined), tx.Nonce())
	}
	if there, taken := n.pool[tx.Nonce()]; taken {
		switch {
		case there.Hash() == tx.Hash():
			return errors.New("already known")
		case !outbids(tx.GasTipCap(), there.GasTipCap()) || !outbids(tx.GasFeeCap(), there.GasFeeCap()):
			return errors.New("replacement transaction underpriced")
		}
	}
	n.pool[tx.Nonce()] = tx
	select {
	case n.work <- struct{}{}:
	default:
	}
	return nil
}

// outbids tells whether an offer is a tenth above another one.
func outbids(offer, before *big.Int) bool {
	return new(big.Int).Mul(offer, big.NewInt(100)).Cmp(new(big.Int).Mul(before, big.NewInt(110))) >= 0
}

// receiveTx writes down which job was ever sent with which nonce, whatever comes of it.
func (n *node) receiveTx(tx *types.Transaction) {
	n.heard[tx.Hash()] = true
	id := jobOf(tx)
	if id == none {
		return
	}
	if other, known := n.jobOf[tx.Nonce()]; known && other != id {
		n.wrong = append(n.wrong, fmt.Sprintf("nonce %d was sent for job %d and for job %d", tx.Nonce(), other, id))
	}
	if other, known := n.nonce[id]; known && other != tx.Nonce() {
		n.wrong = append(n.wrong, fmt.Sprintf("job %d was sent with nonce %d and with nonce %d", id, other, tx.Nonce()))
	}
	if n.jobOf[tx.Nonce()], n.nonce[id] = id, tx.Nonce(); n.came[id].IsZero() {
		n.came[id] = time.Now()
	}
}

// afterBlock waits until a block has just been made, and returns it.
func (n *node) afterBlock(ctx context.Context) (b chain.BlockRef) {
	before := n.now()
	for b = before; b.Number == before.Number && ctx.Err() == nil; b = n.now() {
		wait(ctx, time.Millisecond)
	}
	return b
}

// count is how many transactions were mined.
func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mined)
}

// executed lists the jobs of the transactions that were mined from a nonce on.
func (n *node) executed(from int) (jobs []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.mined[from:] {
		jobs = append(jobs, m.job)
	}
	return jobs
}

// now is the newest block.
func (n *node) now() chain.BlockRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	return chain.BlockRef{Number: n.head.Number.Uint64(), Hash: chain.Hash(n.head.Hash()),
		Parent: chain.Hash(n.head.ParentHash), TimeMs: n.head.ms}
}

// eth are the methods that a sender calls.
type eth struct{ n *node }

//nolint:staticcheck // the method is called eth_chainId
func (e eth) ChainId() *hexutil.Big { return (*hexutil.Big)(e.n.chainID) }

func (e eth) GetBlockByNumber(which string, full bool) (map[string]any, error) {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	if which == "latest" || which == "finalized" {
		return e.n.show(e.n.head, full), nil
	}
	number, err := hexutil.DecodeUint64(which)
	if err != nil {
		return nil, fmt.Errorf("this node keeps no block %s: %w", which, err)
	}
	place, kept := slices.BinarySearchFunc(e.n.mined, number,
		func(m inclusion, number uint64) int { return cmp.Compare(m.block, number) })
	if !kept {
		return nil, fmt.Errorf("this node keeps no block %s without transactions", which)
	}
	return e.n.show(e.n.blocks[e.n.mined[place].in], full), nil
}

func (e eth) GetBlockByHash(hash common.Hash, full bool) map[string]any {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	b, known := e.n.blocks[hash]
	if !known {
		return nil
	}
	return e.n.show(b, full)
}

func (e eth) GetBlockReceipts(hash common.Hash) []map[string]any {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	b, known := e.n.blocks[hash]
	if !known {
		return nil
	}
	all := []map[string]any{}
	for _, m := range e.n.mined[b.first:b.end] {
		all = append(all, e.n.receipt(m))
	}
	return all
}

func (e eth) GetTransactionCount(account common.Address, _ string) hexutil.Uint64 {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	if account != e.n.account {
		return 0
	}
	return hexutil.Uint64(len(e.n.mined))
}

func (e eth) GasPrice() hexutil.Uint64 { return price }

func (e eth) MaxPriorityFeePerGas() hexutil.Uint64 { return price }

func (e eth) BlobBaseFee() hexutil.Uint64 { return 1 }

func (e eth) EstimateGas(json.RawMessage) hexutil.Uint64 { return gasUsed }

func (e eth) BlockNumber() hexutil.Uint64 { return hexutil.Uint64(e.n.now().Number) }

func (e eth) FeeHistory(hexutil.Uint64, string, []float64) map[string]any {
	return map[string]any{"reward": [][]*hexutil.Big{}}
}

func (e eth) SendRawTransaction(raw hexutil.Bytes) (common.Hash, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, err
	}
	from, err := types.Sender(types.LatestSignerForChainID(e.n.chainID), tx)
	if err != nil || from != e.n.account || tx.To() == nil {
		return common.Hash{}, fmt.Errorf("invalid sender %s: %w", from, err)
	}
	return tx.Hash(), e.n.take(tx)
}

func (e eth) GetTransactionReceipt(hash common.Hash) map[string]any {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	nonce, mined := e.n.place[hash]
	if !mined {
		return nil
	}
	return e.n.receipt(e.n.mined[nonce])
}

func (e eth) GetTransactionByHash(hash common.Hash) map[string]any {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	nonce, mined := e.n.place[hash]
	if !mined {
		return nil
	}
	return e.n.transaction(e.n.mined[nonce])
}
