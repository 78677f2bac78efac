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
	"perpkeeper/pkg/txmanager"
)

// opinions get a second endpoint's word on simulated calls that one has answered otherwise than by success. A success
// is enough for sending; what holds a job back has to be said by two, where there are two (TIER-5). The second is asked
// beside the road: no other job waits for it.
//
// It is safe for concurrent use. A nil one takes every first word.
type opinions struct {
	node     txmanager.Endpoints
	clock    func() time.Time
	answered func() // called when a second word has come
	// elsewhere returns a reader of other endpoints.
	elsewhere func(than ...evm.Source) reader

	life    context.Context //nolint:containedctx // of the questions that are asked beside the road
	end     context.CancelFunc
	running sync.WaitGroup
	metrics *Metrics

	mu    sync.Mutex
	asked map[int64]*question // by intent
}

// reader is some of the endpoints.
type reader interface {
	simulator
	Head(ctx context.Context) (chain.BlockRef, error)
}

// question is a second word that was asked for.
type question struct {
	at     time.Time
	done   chan struct{} // closed when the rest is set
	again  opinion       // of the first endpoint, where its word would end the job
	second opinion
	err    error
}

// simulation makes the call of a job elsewhere.
type simulation func(context.Context, simulator) (opinion, error)

// secondOpinion is how long a second endpoint's answer is waited for.
const secondOpinion = time.Second

// opinionFresh is for how long a second word counts.
const opinionFresh = 2 * time.Second

func newOpinions(n txmanager.Endpoints, clock func() time.Time, answered func(), m *Metrics) *opinions {
	life, end := context.WithCancel(context.Background())
	elsewhere := func(than ...evm.Source) reader { return n.Elsewhere(than...) }
	return &opinions{node: n, clock: clock, answered: answered, elsewhere: elsewhere, life: life, end: end, metrics: m,
		asked: map[int64]*question{}}
}

// close ends what is being asked.
func (o *opinions) close() {
	o.end()
	o.running.Wait()
}

// decide returns what is to be believed of an intent's call after a first word on it: that word itself if it is a
// success, if another host says the same, or if there is no other. While another is being asked, and where the two do
// not agree, the job waits. Ask makes the call elsewhere. Found is the number of the block that the job was found in:
// of a state before it nobody can say that the job is done or gone.
func (o *opinions) decide(intent int64, found uint64, first opinion, ask simulation) opinion {
	if o == nil || first.verdict.Kind == txmanager.Onward {
		return first
	}
	if _, _, another := o.apart(first.from); !another {
		return first
	}
	q := o.of(intent, found, first, ask)
	select {
	case <-q.done:
	default:
		first.verdict = txmanager.Verdict{Kind: txmanager.Waiting, Reason: first.verdict.Reason +
			" (as one endpoint says; another is being asked)", Heads: 1, News: q.done}
		return first
	}
	o.mu.Lock()
	delete(o.asked, intent)
	o.mu.Unlock()
	if first.verdict.Kind == txmanager.Ended && q.err == nil {
		if first = q.again; first.verdict.Kind == txmanager.Onward {
			return first
		}
	}
	return o.compare(first, q)
}

// compare holds two words against each other.
func (o *opinions) compare(first opinion, q *question) opinion {
	one, other := first.verdict, q.second.verdict
	switch {
	case q.err != nil:
		o.metrics.opinions.WithLabelValues("silent").Inc()
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; no other confirms it: %v)", one.Reason, q.err))
	case other.Kind == txmanager.Onward:
		o.metrics.opinions.WithLabelValues("contradicts").Inc()
		return q.second
	case one.Kind == other.Kind && one.Outcome == other.Outcome:
		o.metrics.opinions.WithLabelValues("agrees").Inc()
		first.too = q.second.from
	default:
		o.metrics.opinions.WithLabelValues("differs").Inc()
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; as another: %s)", one.Reason, other.Reason))
	}
	return first
}

// confirmed tells whether another host says the same of a call, where there is one to ask. It waits for the answer.
func (o *opinions) confirmed(ctx context.Context, first opinion, ask simulation) bool {
	if o == nil {
		return true
	}
	same, _, another := o.apart(first.from)
	if !another {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, secondOpinion)
	defer cancel()
	second, err := ask(ctx, o.elsewhere(same...))
	return err == nil && second.verdict.Outcome == first.verdict.Outcome
}

// apart parts the endpoints into those at the host of one and the others, and tells whether any of these is read from.
// Beside one that is not known there is none.
func (o *opinions) apart(one evm.Source) (same, others []evm.Source, another bool) {
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
func (o *opinions) of(intent int64, found uint64, first opinion, ask simulation) *question {
	now := o.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, q := range o.asked {
		if now.Sub(q.at) > opinionFresh {
			delete(o.asked, id)
		}
	}
	if q := o.asked[intent]; q != nil {
		return q
	}
	q := &question{at: now, done: make(chan struct{})}
	o.asked[intent] = q
	o.running.Go(func() {
		ctx, cancel := context.WithTimeout(o.life, secondOpinion)
		defer cancel()
		o.compareHosts(ctx, q, found, first, ask)
		close(q.done)
		o.answered()
	})
	return q
}

// compareHosts asks another host. Where the first word would end the job both are asked, each after its head: a word on
// a state before the job was found is none.
func (o *opinions) compareHosts(ctx context.Context, q *question, found uint64, first opinion, ask simulation) {
	same, others, _ := o.apart(first.from)
	other := o.elsewhere(same...)
	if first.verdict.Kind != txmanager.Ended {
		q.second, q.err = ask(ctx, other)
		return
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		q.again, err = informed(ctx, o.elsewhere(others...), found, ask)
		return err
	})
	group.Go(func() (err error) {
		q.second, err = informed(ctx, other, found, ask)
		return err
	})
	q.err = group.Wait()
}

// informed asks somebody who knows the block that a job was found in.
func informed(ctx context.Context, one reader, found uint64, ask simulation) (opinion, error) {
	head, err := one.Head(ctx)
	if err != nil {
		return opinion{}, err
	}
	if head.Number < found {
		return opinion{}, fmt.Errorf("its head is block %d, and the job was found in block %d", head.Number, found)
	}
	return ask(ctx, one)
}
