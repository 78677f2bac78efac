package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
)

// endpoint is one address of the chain. It connects at its first request, and is used only once it has shown that it belongs to the chain.
type endpoint struct {
	url     secret.URL
	chainID uint64
	cfg     Config
	metrics *Metrics
	http    *http.Client

	opening chan struct{} // a lock that a context can end the wait for; guards rpc and proven
	rpc     *rpc.Client
	proven  bool

	mu   sync.Mutex
	last error // how the last request ended
}

func newEndpoint(u secret.URL, chainID uint64, cfg Config, metrics *Metrics, client *http.Client) *endpoint {
	return &endpoint{
		url: u, chainID: chainID, cfg: cfg, metrics: metrics, http: client, opening: make(chan struct{}, 1), last: errors.New("not asked yet"),
	}
}

// ask sends one request and decodes the answer into result. Every error is a callError.
func (e *endpoint) ask(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.RequestTimeout)
	defer cancel()
	client, err := e.open(ctx)
	if err == nil {
		err = e.request(ctx, client, result, method, args...)
	}
	if failed, is := errors.AsType[*callError](err); !is || failed.class != abandoned {
		e.mu.Lock()
		e.last = err
		e.mu.Unlock()
	}
	return err
}

// health is nil if the last request was answered, even by a refusal.
func (e *endpoint) health() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if failed, is := errors.AsType[*callError](e.last); is && failed.class == failedReply {
		return nil
	}
	return e.last
}

// open connects if need be and checks the chain.
func (e *endpoint) open(ctx context.Context) (*rpc.Client, error) {
	select {
	case e.opening <- struct{}{}:
		defer func() { <-e.opening }()
	case <-ctx.Done():
		return nil, e.failed(ctx, "connect", ctx.Err())
	}
	if e.rpc == nil {
		client, err := rpc.DialOptions(ctx, e.url.Reveal(), rpc.WithHTTPClient(e.http))
		if err != nil {
			return nil, e.failed(ctx, "connect", err)
		}
		e.rpc = client
	}
	if !e.proven {
		if err := e.prove(ctx, e.rpc); err != nil {
			return nil, unproven(err)
		}
		e.proven = true
	}
	return e.rpc, nil
}

// unproven marks that a node's refusal to say which chain it belongs to is no answer to the request that waits behind the question.
func unproven(err error) error {
	if failed, is := errors.AsType[*callError](err); is && failed.class == failedReply {
		failed.class = failedUnproven
	}
	return err
}

// prove compares the endpoint's chain with the configured one.
func (e *endpoint) prove(ctx context.Context, client *rpc.Client) error {
	var id hexutil.Uint64
	if err := e.request(ctx, client, &id, "eth_chainId"); err != nil {
		return err
	}
	if uint64(id) != e.chainID {
		return e.wrongChain(ctx, "eth_chainId", "chain id %d is wanted, the endpoint names %d (correct keeper.chain_id, or the address in chain.urls)",
			e.chainID, uint64(id))
	}
	if e.cfg.Genesis.IsZero() {
		return nil
	}
	const method = "eth_getBlockByNumber"
	var raw json.RawMessage
	if err := e.request(ctx, client, &raw, method, hexutil.Uint64(0), false); err != nil {
		return err
	}
	block, err := decodeBlock(raw)
	if err != nil {
		return e.failed(ctx, method, err)
	}
	if block.Hash != e.cfg.Genesis {
		return e.wrongChain(ctx, method, "genesis block %s is wanted, the endpoint has %s (correct chain.genesis, or the address in chain.urls)",
			e.cfg.Genesis, block.Hash)
	}
	return nil
}

func (e *endpoint) wrongChain(ctx context.Context, method, format string, args ...any) error {
	return e.failed(ctx, method, &wrongChainError{fmt.Sprintf(format, args...)})
}

// request is one exchange with the node.
func (e *endpoint) request(ctx context.Context, client *rpc.Client, result any, method string, args ...any) error {
	begun := time.Now()
	var raw json.RawMessage
	err := client.CallContext(ctx, &raw, method, args...)
	e.metrics.seconds.WithLabelValues(method).Observe(time.Since(begun).Seconds())
	if err != nil {
		return e.failed(ctx, method, err)
	}
	if into, isRaw := result.(*json.RawMessage); isRaw {
		*into = raw
		return nil
	}
	if err := gojson.Unmarshal(raw, result); err != nil {
		return e.failed(ctx, method, malformed("reading the answer: %v", err))
	}
	return nil
}

// failed makes the error of a request and counts it. A request whose context was cancelled fails with whatever the cause was.
func (e *endpoint) failed(ctx context.Context, method string, err error) error {
	failed := &callError{endpoint: e.url, method: method, class: abandoned, err: err}
	if !errors.Is(ctx.Err(), context.Canceled) {
		failed.class, failed.err = classify(err)
	}
	if failed.class != abandoned {
		e.metrics.errors.WithLabelValues(method, string(failed.class)).Inc()
	}
	return failed
}

// subscribe asks the endpoint to push new heads.
func (e *endpoint) subscribe(ctx context.Context, heads chan json.RawMessage) (*rpc.ClientSubscription, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.RequestTimeout)
	defer cancel()
	client, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	sub, err := client.EthSubscribe(ctx, heads, "newHeads")
	if err != nil {
		return nil, e.failed(ctx, "eth_subscribe", err)
	}
	return sub, nil
}

func (e *endpoint) close() {
	e.opening <- struct{}{}
	defer func() { <-e.opening }()
	if e.rpc != nil {
		e.rpc.Close()
	}
}

// blockArg is a block by hash, as calls on its state take it (EIP-1898).
type blockArg struct {
	Hash chain.Hash `json:"blockHash"`
}
