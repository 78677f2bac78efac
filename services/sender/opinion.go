package sender

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/evm"
)

// opinions get a second endpoint's word on simulated calls that one has answered otherwise than by success. A success is enough for sending; what holds a
// job back has to be said by two, where there are two (TIER-5). The second is asked beside the road: no other job waits for it.
//
// It is safe for concurrent use. A nil one takes every first word.
type opinions struct {
	node  watcher
	clock func() time.Time
	heard func() // called when a second word has come

	life    context.Context //nolint:containedctx // of the questions that are asked beside the road
	end     context.CancelFunc
	running sync.WaitGroup
	metrics *Metrics

	mu    sync.Mutex
	asked map[int64]*question // by intent
}

// question is a second word that was asked for.
type question struct {
	at     time.Time
	done   chan struct{} // closed when the rest is set
	second opinion
	err    error
}

// opinionFresh is for how long a second word counts.
const opinionFresh = 2 * time.Second

func newOpinions(n watcher, clock func() time.Time, heard func(), m *Metrics) *opinions {
	life, end := context.WithCancel(context.Background())
	return &opinions{node: n, clock: clock, heard: heard, life: life, end: end, metrics: m, asked: map[int64]*question{}}
}

// close ends what is being asked.
func (o *opinions) close() {
	o.end()
	o.running.Wait()
}

// weigh returns what is to be believed of an intent's call after a first word on it: that word itself if it is a success, if another endpoint says the same,
// or if there is no other. While another is being asked, and where the two do not agree, the job waits. Ask makes the call elsewhere.
func (o *opinions) weigh(_ context.Context, intent int64, first opinion, ask func(context.Context, simulator) (opinion, error)) opinion {
	if o == nil || first.verdict.kind == onward || !o.another(first.from) {
		return first
	}
	q := o.of(intent, first.from, ask)
	select {
	case <-q.done:
	default:
		first.verdict = verdict{kind: waiting, reason: first.verdict.reason + " (as one endpoint says; another is being asked)", heads: 1, news: q.done}
		return first
	}
	o.mu.Lock()
	delete(o.asked, intent)
	o.mu.Unlock()
	return o.compare(first, q)
}

// compare holds two words against each other.
func (o *opinions) compare(first opinion, q *question) opinion {
	one, other := first.verdict, q.second.verdict
	switch {
	case q.err != nil:
		o.metrics.opinions.WithLabelValues("silent").Inc()
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; no other answers: %v)", one.reason, q.err))
	case other.kind == onward:
		o.metrics.opinions.WithLabelValues("contradicts").Inc()
		return q.second
	case one.kind == other.kind && one.outcome == other.outcome:
		o.metrics.opinions.WithLabelValues("agrees").Inc()
	default:
		o.metrics.opinions.WithLabelValues("differs").Inc()
		first.verdict = odd(fmt.Sprintf("%s (as one endpoint says; as another: %s)", one.reason, other.reason))
	}
	return first
}

// another tells whether there is an endpoint besides one to read from.
func (o *opinions) another(than evm.Source) bool {
	return than != "" && slices.ContainsFunc(o.node.Endpoints(), func(e evm.EndpointStatus) bool { return !e.Private && e.Source != than })
}

// of returns the question about an intent, which is asked now if it was not, or too long ago.
func (o *opinions) of(intent int64, than evm.Source, ask func(context.Context, simulator) (opinion, error)) *question {
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
		q.second, q.err = ask(ctx, o.node.Elsewhere(than))
		close(q.done)
		o.heard()
	})
	return q
}
