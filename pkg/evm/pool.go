package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm/agreement"
)

// What nodes are asked.
const (
	methodChainID     = "eth_chainId"
	methodBlock       = "eth_getBlockByHash"
	methodBlockAt     = "eth_getBlockByNumber"
	methodReceipts    = "eth_getBlockReceipts"
	methodReceipt     = "eth_getTransactionReceipt"
	methodTransaction = "eth_getTransactionByHash"
	methodCall        = "eth_call"
	methodNonce       = "eth_getTransactionCount"
	methodBalance     = "eth_getBalance"
	methodCode        = "eth_getCode"
	methodGasPrice    = "eth_gasPrice"
	methodTips        = "eth_feeHistory"
	methodSend        = "eth_sendRawTransaction"
	methodSubscribe   = "eth_subscribe"
	methodSoftware    = "web3_clientVersion"

	// labelBatch is how requests for as much as a node gives are called in metrics.
	labelBatch = "eth_getBlockByNumber batch"
)

// pool is the endpoints of a chain.
type pool struct {
	cfg        Config
	chainID    uint64
	forks      []Fork
	log        zerolog.Logger
	metrics    *Metrics
	public     []*endpoint
	private    []*endpoint
	memory     memory
	proofs     proofs
	finality   finality
	disputes   *disputes
	judging    sync.Mutex // of heads
	heads      agreement.Heads
	price, tip atomic.Uint64 // the gas price and the highest tip that were last agreed on; 0 before
	transport  *http.Transport

	closing    context.CancelFunc
	life       context.Context //nolint:containedctx // The client's own: what runs in the background ends with it.
	background sync.WaitGroup
}

// errOvertaken ends requests that another endpoint has answered meanwhile.
var errOvertaken = errors.New("another endpoint was faster")

// ranked returns the endpoints to ask for a purpose, the best first: the good ones, then those excluded for a passing
// reason. Those that were caught are asked only while there is no other, one of another chain only to say so.
func (p *pool) ranked(purpose Purpose, without []Source) ([]*endpoint, error) {
	places, err := p.places(purpose, without)
	if err != nil {
		return nil, err
	}
	return upTo(max(last, places[0].usability), places), nil
}

// ranking is an endpoint's place among the others, for a purpose.
type ranking struct {
	*endpoint
	usability usability
	score     float64
}

// places returns all endpoints, the best first.
func (p *pool) places(purpose Purpose, without []Source) ([]ranking, error) {
	var places []ranking
	for _, e := range p.public {
		if slices.Contains(without, e.name) {
			continue
		}
		s, score := e.rank(purpose)
		places = append(places, ranking{e, s, score})
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("no endpoint is left to ask for %s (name more in chain.urls)", purpose)
	}
	slices.SortStableFunc(places, func(a, b ranking) int {
		return cmp.Or(cmp.Compare(a.usability, b.usability), cmp.Compare(a.score, b.score))
	})
	return places, nil
}

// upTo returns the endpoints that stand no worse.
func upTo(worst usability, places []ranking) (list []*endpoint) {
	for _, at := range places {
		if at.usability <= worst {
			list = append(list, at.endpoint)
		}
	}
	return list
}

// question is one request and how its answer is read.
type question[T any] struct {
	method  string
	args    []any
	first   *endpoint // to be asked first if it can be used: it is known to have the answer
	purpose Purpose   // what it is for, where that is not what the method is for
	read    func(json.RawMessage) (T, error)
}

// ask sends a question to the best endpoint, to the next one when the answer is late or none, and so on. The first
// usable answer wins. What the contract itself refuses (a revert) is an answer.
func ask[T any](ctx context.Context, r Reader, q question[T]) (T, *endpoint, error) {
	var none T
	purpose := cmp.Or(q.purpose, purposeOf(q.method))
	candidates, err := r.pool.ranked(purpose, r.without)
	if err != nil {
		return none, nil, err
	}
	if at := slices.Index(candidates, q.first); at > 0 && q.first.usable(purpose) == good {
		candidates = slices.Insert(slices.Delete(candidates, at, at+1), 0, q.first)
	}
	return race(ctx, candidates, q)
}

// reply is how an endpoint answered.
type reply[T any] struct {
	value T
	from  int
	err   error
}

func race[T any](ctx context.Context, candidates []*endpoint, q question[T]) (none T, _ *endpoint, _ error) {
	if len(candidates) == 1 { // no need for more than this goroutine
		v, err := put(ctx, candidates[0], q)
		return v, candidates[0], err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errOvertaken)
	replies := make(chan reply[T], len(candidates))
	asked, open := 0, 0
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	next := func() {
		at, e := asked, candidates[asked]
		asked, open = asked+1, open+1
		late.Reset(e.patience(q.method))
		go func() {
			v, err := put(ctx, e, q)
			replies <- reply[T]{v, at, err}
		}()
	}
	next()
	problems := make([]error, len(candidates))
	for open > 0 {
		select {
		case <-late.C:
			if asked < len(candidates) {
				next()
			}
		case r := <-replies:
			open--
			switch {
			case r.err == nil || isFinal(r.err):
				return r.value, candidates[r.from], r.err
			case asked < len(candidates):
				next()
			}
			problems[r.from] = r.err
		}
	}
	return none, nil, exhausted(problems)
}

// put asks one endpoint and reads its answer.
func put[T any](ctx context.Context, e *endpoint, q question[T]) (value T, err error) {
	raw, err := e.ask(ctx, q.method, q.args...)
	if err != nil {
		return value, err
	}
	if value, err = q.read(raw); err != nil {
		return value, e.failed(ctx, q.method, unfit(err, q.method, q.args, raw), 0)
	}
	return value, nil
}

// eachInTurn asks endpoints one after the other until one gives what is wanted: for requests that are too big to be
// sent twice. Where all of them want fewer requests they are asked again after the pause they want.
func eachInTurn[T any](ctx context.Context, r Reader, purpose Purpose, attempt func(*endpoint) (T, error)) (none T,
	_ error) {
	candidates, err := r.pool.spread(purpose, r.without)
	if err != nil {
		return none, err
	}
	for round := 1; ; round++ {
		var problems []error
		for _, e := range candidates {
			v, err := attempt(e)
			if err == nil || ctx.Err() != nil {
				return v, err
			}
			problems = append(problems, err)
		}
		if err := exhausted(problems); round >= patientRounds || !everyAnswer(err, isThrottled) {
			return none, err
		}
	}
}

// patientRounds is how often endpoints are asked that all want fewer requests: each round waits for as long as they
// say.
const patientRounds = 5

func isThrottled(err error) bool {
	failed, is := errors.AsType[*callError](err)
	return is && failed.class == failedThrottled
}

// scalar is a question whose answer is one JSON value.
func scalar[T any](method string, args ...any) question[T] {
	return question[T]{method: method, args: args, read: func(raw json.RawMessage) (v T, err error) {
		if err := json.Unmarshal(raw, &v); err != nil {
			return v, malformed("reading the answer: %v", err)
		}
		return v, nil
	}}
}

// sawHead takes note of the newest block an endpoint names, and reports whether it can be the chain's. One that names
// another is excluded for heads.
func (p *pool) sawHead(e *endpoint, head chain.BlockRef) (believed bool) {
	if !p.believes(e, head) {
		e.distrust(ForHeads, ReasonAhead, fmt.Sprintf("it named block %d of %s, which no other host is near",
			head.Number, time.UnixMilli(int64(head.TimeMs)).UTC().Format(time.RFC3339)))
		e.names(head)
		return false
	}
	best := p.bestHead(e, head)
	var behind time.Duration
	if head.Number < best.Number && head.TimeMs < best.TimeMs {
		behind = time.Duration(best.TimeMs-head.TimeMs) * time.Millisecond
	}
	e.sawHead(head, behind)
	return true
}

// notes has the newest block of an endpoint compared with those of others.
func (p *pool) notes(e *endpoint, head chain.BlockRef) {
	p.judging.Lock()
	defer p.judging.Unlock()
	p.heads.Note(e.host, head, time.Now())
}

// believes reports whether a head can be the chain's, as far as other hosts can tell.
func (p *pool) believes(e *endpoint, head chain.BlockRef) bool {
	p.judging.Lock()
	defer p.judging.Unlock()
	return p.heads.Believe(e.host, head, time.Now())
}

// bestHead is the highest head; of three or more the second highest, so that no single endpoint can make the others
// look stale by making up blocks.
func (p *pool) bestHead(e *endpoint, named chain.BlockRef) chain.BlockRef {
	var heads []chain.BlockRef
	for _, other := range p.public {
		if head := other.head(); other == e {
			heads = append(heads, named)
		} else if !head.Hash.IsZero() && other.usable(ForHeads) < distrusted {
			heads = append(heads, head)
		}
	}
	slices.SortFunc(heads, func(a, b chain.BlockRef) int { return cmp.Compare(b.Number, a.Number) })
	switch len(heads) {
	case 0:
		return chain.BlockRef{}
	case 1, 2:
		return heads[0]
	default:
		return heads[1]
	}
}
