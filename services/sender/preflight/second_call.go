package preflight

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// secondCalls repeat, at another host, simulated calls that did not succeed at the first. One success is enough for
// sending; a job is held back only where two hosts agree on it, where there are two (TIER-5). The second call is made
// in the background: no other job waits for it.
//
// It is safe for concurrent use.
type secondCalls struct {
	node     txmanager.Endpoints
	clock    func() time.Time
	answered func() // called when a second result has come
	// elsewhere returns a reader of other endpoints.
	excluding func(than ...evm.Source) reader

	life    context.Context //nolint:containedctx // of the calls that are made in the background
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	asked map[int64]*question // by intent
}

// reader is some of the endpoints.
type reader interface {
	simulator
	Head(ctx context.Context) (chain.BlockRef, error)
}

// question is a second call that was asked for.
type question struct {
	at     time.Time
	done   chan struct{} // closed when the rest is set
	again  callResult    // of the first endpoint, where its result would end the job
	second callResult
	err    error
}

// simulation makes the call of a job at the given endpoints.
type simulation func(context.Context, simulator) (callResult, error)

// secondCallTimeout is how long a second endpoint's answer is waited for.
const secondCallTimeout = time.Second

// secondCallFresh is for how long a second result counts.
const secondCallFresh = 2 * time.Second

func newSecondCalls(n txmanager.Endpoints, clock func() time.Time, answered func()) *secondCalls {
	life, end := context.WithCancel(context.Background())
	excluding := func(than ...evm.Source) reader { return n.Excluding(than...) }
	return &secondCalls{node: n, clock: clock, answered: answered, excluding: excluding, life: life, end: end,
		asked: map[int64]*question{}}
}

// close cancels the calls under way and waits for them.
func (o *secondCalls) close() {
	o.end()
	o.running.Wait()
}

// decide returns the result that counts for an intent's call, given the first one: the first itself if it is a success,
// if another host has the same, or if there is no other. While another is being asked, and where the two do not agree,
// the job waits. Ask makes the call elsewhere. Found is the number of the block that the job was found in: a state
// before it cannot show that the job is done or gone.
func (o *secondCalls) decide(intent int64, found uint64, first callResult, ask simulation) callResult {
	if first.verdict.Kind == txmanager.Proceed {
		return first
	}
	if _, _, another := o.apart(first.from); !another {
		return first
	}
	q := o.of(intent, found, first, ask)
	select {
	case <-q.done:
	default:
		first.verdict = txmanager.Verdict{Kind: txmanager.Retry, Reason: first.verdict.Reason +
			" (as one endpoint says; another is being asked)", Heads: 1, Wake: q.done}
		return first
	}
	o.mu.Lock()
	delete(o.asked, intent)
	o.mu.Unlock()
	if first.verdict.Kind == txmanager.Drop && q.err == nil {
		if first = q.again; first.verdict.Kind == txmanager.Proceed {
			return first
		}
	}
	return o.compare(first, q)
}

// compare returns what two results amount to.
func (o *secondCalls) compare(first callResult, q *question) callResult {
	one, other := first.verdict, q.second.verdict
	switch {
	case q.err != nil:
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; no other confirms it: %v)", one.Reason, q.err))
	case other.Kind == txmanager.Proceed:
		return q.second
	case one.Kind == other.Kind && one.Outcome == other.Outcome:
		first.too = q.second.from
	default:
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; as another: %s)", one.Reason, other.Reason))
	}
	return first
}

// confirmed reports whether another host has the same result, where there is one to ask. It waits for the answer.
func (o *secondCalls) confirmed(ctx context.Context, first callResult, ask simulation) bool {
	same, _, another := o.apart(first.from)
	if !another {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, secondCallTimeout)
	defer cancel()
	second, err := ask(ctx, o.excluding(same...))
	return err == nil && second.verdict.Outcome == first.verdict.Outcome
}

// apart splits the endpoints into those at the host of one and the others, and reports whether any of the others is
// read from. For an endpoint that is not known there are none.
func (o *secondCalls) apart(one evm.Source) (same, others []evm.Source, another bool) {
	all := o.node.Endpoints()
	at := slices.IndexFunc(all, func(e evm.EndpointStatus) bool { return e.Source == one })
	for _, e := range all {
		switch {
		case at < 0:
		case e.Host == all[at].Host:
			same = append(same, e.Source)
		default:
			others, another = append(others, e.Source), another || !e.Private
		}
	}
	return same, others, another
}

// of returns the question about an intent, which is asked now if it was not, or too long ago.
func (o *secondCalls) of(intent int64, found uint64, first callResult, ask simulation) *question {
	now := o.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, q := range o.asked {
		if now.Sub(q.at) > secondCallFresh {
			delete(o.asked, id)
		}
	}
	if q := o.asked[intent]; q != nil {
		return q
	}
	q := &question{at: now, done: make(chan struct{})}
	o.asked[intent] = q
	o.running.Go(func() {
		ctx, cancel := context.WithTimeout(o.life, secondCallTimeout)
		defer cancel()
		o.compareHosts(ctx, q, found, first, ask)
		close(q.done)
		o.answered()
	})
	return q
}

// compareHosts asks another host. Where the first result would end the job both are asked, each after its head: a
// result on a state before the job was found does not count.
func (o *secondCalls) compareHosts(ctx context.Context, q *question, found uint64, first callResult, ask simulation) {
	same, others, _ := o.apart(first.from)
	other := o.excluding(same...)
	if first.verdict.Kind != txmanager.Drop {
		q.second, q.err = ask(ctx, other)
		return
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		q.again, err = informed(ctx, o.excluding(others...), found, ask)
		return err
	})
	group.Go(func() (err error) {
		q.second, err = informed(ctx, other, found, ask)
		return err
	})
	q.err = group.Wait()
}

// informed makes a call at endpoints whose head is at or past the block that a job was found in.
func informed(ctx context.Context, one reader, found uint64, ask simulation) (callResult, error) {
	head, err := one.Head(ctx)
	if err != nil {
		return callResult{}, err
	}
	if head.Number < found {
		return callResult{}, fmt.Errorf("its head is block %d, and the job was found in block %d", head.Number, found)
	}
	return ask(ctx, one)
}
