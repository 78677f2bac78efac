package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

const fakeChainID = 56

var (
	venue    = chain.Address{0xee, 19: 1}
	eventOne = chain.Hash{31: 1}
	eventTwo = chain.Hash{31: 2}
)

// fakeBlock is a block of one transaction, as nodes show it.
type fakeBlock struct {
	header  *types.Header
	hash    common.Hash
	tx      common.Hash
	logs    []*types.Log
	json    map[string]any
	receipt map[string]any
}

// fakeChain is a chain of consistent blocks: hashes, parents, blooms and roots are right; only signatures are none.
// Block n has logs(n) logs, of both events in turn.
type fakeChain []*fakeBlock

func newFakeChain(length int, salt byte, logs func(n int) int) fakeChain {
	var c fakeChain
	parent := common.Hash{}
	for n := range length {
		signed := fakeTx(0, []byte{salt, byte(n >> 16), byte(n >> 8), byte(n)})
		tx := signed.Hash()
		b := &fakeBlock{tx: tx}
		receipt := &types.Receipt{Type: 2, Status: 1, CumulativeGasUsed: 21_000}
		for i := range logs(n) {
			b.logs = append(b.logs, &types.Log{
				Address:     common.Address(venue),
				Topics:      []common.Hash{common.Hash([]chain.Hash{eventOne, eventTwo}[i%2])},
				Data:        []byte{byte(n), byte(i)},
				BlockNumber: uint64(n), TxHash: tx, Index: uint(i),
			})
		}
		receipt.Logs = b.logs
		receipt.Bloom = types.CreateBloom(receipt)
		b.header = &types.Header{
			ParentHash: parent, Number: big.NewInt(int64(n)), Time: 1_700_000_000 + uint64(n),
			Difficulty: big.NewInt(2), Extra: []byte{salt}, GasLimit: 1,
			BaseFee: new(big.Int),
			Bloom:   receipt.Bloom, ReceiptHash: types.DeriveSha(types.Receipts{receipt}, trie.NewListHasher()),
			TxHash: types.DeriveSha(types.Transactions{signed}, trie.NewListHasher()),
		}
		b.hash = b.header.Hash()
		parent = b.hash
		for _, l := range b.logs {
			l.BlockHash = b.hash
		}
		b.json = asMap(b.header)
		b.json["transactions"] = []any{showTx(signed, b.hash, 0)}
		b.receipt = map[string]any{
			"type": "0x2", "status": "0x1", "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
			"effectiveGasPrice": "0x1", "blockHash": b.hash,
			"blockNumber": hexutil.Uint64(n), "transactionHash": tx, "transactionIndex": "0x0", "from": venueText,
			"to":   venueText,
			"logs": append([]*types.Log{}, b.logs...),
		}
		c = append(c, b)
	}
	return c
}

// fakeTx is a transaction to the venue that nobody has signed.
func fakeTx(nonce uint64, input []byte) *types.Transaction {
	to := common.Address(venue)
	return types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(fakeChainID), Nonce: nonce, GasTipCap: big.NewInt(1),
		GasFeeCap: big.NewInt(1), Gas: 100_000, To: &to, Data: input})
}

// showTx is how a node shows a transaction of a block, as the venue's.
func showTx(tx *types.Transaction, block common.Hash, index int) map[string]any {
	shown := asMap(tx)
	maps.Copy(shown, map[string]any{"from": venueText, "blockHash": block,
		"transactionIndex": hexutil.Uint64(index)})
	return shown
}

const venueText = "0xee00000000000000000000000000000000000001"

func asMap(v any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err)
	}
	return m
}

func (c fakeChain) ref(n int) chain.BlockRef {
	h := c[n].header
	return chain.BlockRef{Number: uint64(n), Hash: chain.Hash(c[n].hash), Parent: chain.Hash(h.ParentHash),
		TimeMs: h.Time * 1000}
}

// block is as much of a block as is needed to ask for its receipts.
func (c fakeChain) block(n int) Block {
	return Block{Header: Header{BlockRef: c.ref(n), ReceiptsRoot: chain.Hash(c[n].header.ReceiptHash)},
		Txs: []chain.Tx{{Hash: chain.Hash(c[n].tx)}}}
}

// fault is an error a fake node answers with, or an HTTP status.
type fault struct {
	code   int
	text   string
	status int
	header http.Header
}

func refusal(code int, text string) *fault { return &fault{code: code, text: text} }

// fakeNode is a node over HTTP. Script comes first and may answer, change, delay or refuse what it likes; what it
// leaves alone is answered honestly.
type fakeNode struct {
	chain   fakeChain
	chainID uint64

	mu     sync.Mutex
	head   int
	script func(ctx context.Context, method string, params []json.RawMessage) (result any, f *fault, done bool)
	asked  map[string]int
}

func (n *fakeNode) setHead(to int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.head = to
}

type script = func(context.Context, string, []json.RawMessage) (any, *fault, bool)

// inject makes the node follow a script from now on; nil makes it honest.
func (n *fakeNode) inject(s script) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.script = s
}

// count is how often a method was asked for.
func (n *fakeNode) count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[method]
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	batch := strings.HasPrefix(string(body), "[")
	var requests []struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	if !batch {
		body = []byte("[" + string(body) + "]")
	}
	if err := json.Unmarshal(body, &requests); err != nil {
		panic(err)
	}
	if batch {
		if _, f := n.answer(r.Context(), "batch",
			[]json.RawMessage{json.RawMessage(fmt.Sprint(len(requests)))}); f != nil {
			writeFault(w, json.RawMessage("null"), f)
			return
		}
	}
	var answers []any
	for _, q := range requests {
		result, f := n.answer(r.Context(), q.Method, q.Params)
		switch {
		case f != nil && !batch:
			writeFault(w, q.ID, f)
			return
		case f != nil:
			answers = append(answers,
				map[string]any{"jsonrpc": "2.0", "id": q.ID,
					"error": map[string]any{"code": f.code, "message": f.text}})
		default:
			answers = append(answers, map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": result})
		}
	}
	var out any = answers
	if !batch {
		out = answers[0]
	}
	_ = json.NewEncoder(w).Encode(out)
}

func writeFault(w http.ResponseWriter, id json.RawMessage, f *fault) {
	if f.status < 0 {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), f.header)
	if f.status > 0 {
		http.Error(w, f.text, f.status)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": f.code, "message": f.text}})
}

func (n *fakeNode) answer(ctx context.Context, method string, params []json.RawMessage) (any, *fault) {
	n.mu.Lock()
	if n.asked == nil {
		n.asked = map[string]int{}
	}
	n.asked[method]++
	script, head := n.script, n.head
	n.mu.Unlock()
	if script != nil {
		if result, f, done := script(ctx, method, params); done {
			return result, f
		}
	}
	return n.honest(method, params, head)
}

func (n *fakeNode) honest(method string, params []json.RawMessage, head int) (any, *fault) {
	switch method {
	case "batch":
		return nil, nil
	case "eth_chainId":
		return hexutil.Uint64(n.chainID), nil
	case methodBlockAt:
		number := head
		if at := unquote(params[0]); strings.HasPrefix(at, "0x") {
			number = int(hexutil.MustDecodeUint64(at))
		}
		if number > head {
			return nil, nil
		}
		return n.chain[number].show(string(params[1]) == "true"), nil
	case methodBlock:
		if b := n.byHash(unquote(params[0]), head); b != nil {
			return b.show(true), nil
		}
		return nil, nil
	case methodReceipts:
		if b := n.byHash(unquote(params[0]), head); b != nil {
			return []any{b.receipt}, nil
		}
		return nil, nil
	case methodGasPrice:
		return hexutil.Uint64(n.chainID), nil // tells nodes apart
	case methodSend:
		return chain.Keccak256(hexutil.MustDecode(unquote(params[0]))), nil
	default:
		return nil, refusal(-32601, "the method "+method+" does not exist/is not available")
	}
}

func (b *fakeBlock) show(full bool) map[string]any {
	if full {
		return b.json
	}
	slim := maps.Clone(b.json)
	slim["transactions"] = []string{}
	return slim
}

func (n *fakeNode) byHash(hash string, head int) *fakeBlock {
	for _, b := range n.chain[:head+1] {
		if b.hash.Hex() == hash {
			return b
		}
	}
	return nil
}

func unquote(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// fakeNet connects clients and nodes through memory, so that time can be played.
type fakeNet struct {
	hosts map[string]pipeListener
	done  sync.WaitGroup
}

// newFakeNet serves each node at http://a, http://b and so on, until the test ends.
func newFakeNet(t *testing.T, nodes ...*fakeNode) (*http.Transport, Config) {
	t.Helper()
	n := &fakeNet{hosts: map[string]pipeListener{}}
	cfg := DefaultConfig()
	cfg.URLs = nil
	for i, node := range nodes {
		name := string(rune('a' + i))
		listener := pipeListener{make(chan net.Conn), make(chan struct{})}
		n.hosts[name+":80"] = listener
		server := &http.Server{Handler: node}
		n.done.Go(func() { _ = server.Serve(listener) })
		t.Cleanup(func() { _ = server.Close() })
		cfg.URLs = append(cfg.URLs, secret.MustURL("http://"+name+"/"))
	}
	return &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 16}, cfg
}

func (n *fakeNet) dial(ctx context.Context, _, address string) (net.Conn, error) {
	here, there := net.Pipe()
	host := n.hosts[address]
	select {
	case host.conns <- there:
		return here, nil
	case <-host.closed: // a dial goes on without whoever asked for it
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// dialFakes makes a client of fake nodes, with a configuration changed by adapt.
func dialFakes(t *testing.T, adapt func(*Config), nodes ...*fakeNode) (*Client, *prometheus.Registry) {
	t.Helper()
	transport, cfg := newFakeNet(t, nodes...)
	if adapt != nil {
		adapt(&cfg)
	}
	reg := prometheus.NewRegistry()
	c, err := dial(t.Context(), fakeChainID, cfg, zerolog.New(zerolog.NewTestWriter(t)), NewMetrics(reg), transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, reg
}

func newMetricsForTest() *Metrics { return NewMetrics(prometheus.NewRegistry()) }

// fakes makes nodes of one chain of a length, with a log in every third block.
func fakes(count, length int) ([]*fakeNode, fakeChain) {
	c := newFakeChain(length, 0, func(n int) int { return (n + 1) % 3 })
	var nodes []*fakeNode
	for range count {
		nodes = append(nodes, &fakeNode{chain: c, chainID: fakeChainID, head: length - 1})
	}
	return nodes, c
}

// hang lets nobody have an answer to a method, before the one who asked gives up.
func hang(methods ...string) script {
	return func(ctx context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
		if !slices.Contains(methods, method) {
			return nil, nil, false
		}
		<-ctx.Done()
		return nil, &fault{status: -1}, true
	}
}

// delay lets an answer wait, for as long as somebody waits for it.
func delay(d time.Duration, methods ...string) script {
	return func(ctx context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
		if slices.Contains(methods, method) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		return nil, nil, false
	}
}

// refuse answers a method with a fault.
func refuse(f *fault, methods ...string) script {
	return func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
		return nil, f, slices.Contains(methods, method)
	}
}

// gauge reads a metric of one endpoint and reason.
func gauge(t *testing.T, reg *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// excluded returns why an endpoint is excluded for a purpose; empty if it is not.
func excluded(c *Client, at int, p Purpose) Reason {
	for _, x := range c.Endpoints()[at].Excluded {
		if x.Purpose == p {
			return x.Reason
		}
	}
	return ""
}

// prefer has an endpoint asked first of all.
func prefer(e *endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vitals.lag = -100
}
