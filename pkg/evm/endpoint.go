package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/setting/secret"
)

// endpoint is one address of the chain: its connection, and what was learnt about it.
type endpoint struct {
	line
	name     Source // the address without its secrets, unique in the pool
	host     string // what has to differ where two have to agree
	private  bool   // for sending only
	bundles  bool   // it takes bundles, and nothing else
	cfg      Config
	metrics  *Metrics
	log      zerolog.Logger
	bucket   *bucket
	served   *served      // by whom; all of the pool share it
	disputes *disputes    // all of the pool share them
	underWay atomic.Int64 // requests

	mu         sync.Mutex
	last       error // how the last request ended
	vitals     vitals
	exclusions exclusions
	errs       map[Purpose]*ownErrors
	batches    int // headers in a batch
	// software is what the node calls itself, when it was last asked.
	software string
	asked    time.Time
}

func newEndpoint(
	u secret.URL, name Source, host string, h header, private bool, chainID uint64, cfg Config,
	transport *http.Transport,
	log zerolog.Logger, m *Metrics,
) *endpoint {
	e := &endpoint{
		name: name, host: host, private: private, cfg: cfg, metrics: m, log: log.With().Str("endpoint", string(name)).
			Logger(), bucket: &bucket{},
		last: errors.New("not asked yet"), batches: headersBatch, errs: map[Purpose]*ownErrors{},
	}
	e.line = line{
		url: u, chainID: chainID, sendOnly: private, header: h,
		opening: make(chan struct{}, 1),
		http:    &http.Client{Transport: patient{transport, e.throttled}, CheckRedirect: stay},
	}
	return e
}

// ask sends one request, when the endpoint's rate allows. Every error is a callError.
func (e *endpoint) ask(ctx context.Context, method string, args ...any) (raw json.RawMessage, err error) {
	err = e.exchange(ctx, method, func(ctx context.Context, c *connection) (err error) {
		raw, err = c.call(ctx, method, args...)
		return err
	})
	if err == nil {
		e.disputes.hear(e, method, args, raw)
	}
	return raw, err
}

// askBatch sends several calls in one request. It fails where one of them has no answer.
func (e *endpoint) askBatch(ctx context.Context, label string, calls []batchCall) error {
	return e.exchange(ctx, label, func(ctx context.Context, c *connection) error {
		if err := c.batch(ctx, calls); err != nil {
			return err
		}
		for _, call := range calls {
			e.disputes.hear(e, call.method, call.args, call.result)
		}
		return allAnswered(calls)
	})
}

// allAnswered is the error of the first call that has one.
func allAnswered(calls []batchCall) error {
	for _, call := range calls {
		if call.err != nil {
			return call.err
		}
	}
	return nil
}

// exchange is one trip to the node, with a deadline: go-ethereum's client waits for ever when a WebSocket ends at the
// wrong moment. It takes note of how it went.
func (e *endpoint) exchange(ctx context.Context, method string, trip func(context.Context, *connection) error) error {
	if err := e.await(ctx, method); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, bounded{}, longest(method)), e.cfg.RequestTimeout)
	defer cancel()
	begun := time.Now()
	e.underWay.Add(1)
	err := e.line.do(limited, trip)
	e.underWay.Add(-1)
	took := time.Since(begun)
	e.metrics.seconds.WithLabelValues(method).Observe(took.Seconds())
	if err == nil {
		e.answered(method, took)
		return nil
	}
	return e.failed(ctx, method, err, took)
}

// await waits for the endpoint's rate limit. A signed transaction never waits: it is worth more than what the node may
// think of us.
func (e *endpoint) await(ctx context.Context, method string) error {
	wait := e.bucket.take(time.Now())
	if wait <= 0 || method == methodSend || method == methodBundle {
		return nil
	}
	if !retry.Sleep(ctx, wait) {
		return e.failed(ctx, method, ctx.Err(), 0)
	}
	return nil
}

func (e *endpoint) answered(method string, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = nil
	e.vitals.answered(method, took)
	delete(e.errs, purposeOf(method))
	e.served.note(purposeOf(method), e.name, time.Now())
	// nothing is answered before the chain is shown
	e.readmit(func(x Exclusion) bool { return x.Reason == ReasonWrongChain })
	e.judge()
}

// failed makes the error of a request, counts it, and draws the consequences. A request that nobody waits for any more,
// because the caller's context was cancelled or its time is over, fails with whatever the cause was, and is no fault of
// the endpoint.
func (e *endpoint) failed(ctx context.Context, method string, err error, took time.Duration) error {
	class, clean := classify(err)
	failed := &callError{endpoint: e.url, source: e.name, method: method, class: class, err: clean}
	if ctx.Err() != nil {
		failed.class = abandoned
		// it takes at least this long
		if cause := context.Cause(ctx); errors.Is(cause, errOvertaken) || errors.Is(cause, context.DeadlineExceeded) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.vitals.overtaken(took)
			e.judge()
		}
		return failed
	}
	e.blame(failed)
	return failed
}

// blame counts a failure against the endpoint.
func (e *endpoint) blame(failed *callError) {
	now := time.Now()
	if failed.class == failedReply && wantsFewer(failed.err) {
		failed.class = failedThrottled
	}
	if failed.class == failedThrottled {
		e.bucket.refused(now, 0)
	}
	if failed.class != failedNotFound {
		e.metrics.errors.WithLabelValues(failed.method, string(failed.class)).Inc()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = failed
	e.refused(failed, now)
	switch failed.class {
	case failedWrongChain:
		e.exclude(Everything, ReasonWrongChain, failed.err.Error())
	case failedLie:
		e.catch(failed.about(), ReasonLied, failed.err)
	case failedReply, failedNotFound, failedThrottled:
	default:
		e.vitals.failed()
		e.judge()
	}
}

// refused notes an error of the node's own, and excludes an endpoint that has nothing else to say: for seconds,
// whatever its words are. An HTTP status is such an error too; one that keeps everything from being answered is no
// answer at all, and the vitals have it. One that is for sending only is asked nothing else. What no other endpoint has
// served meanwhile is no fault of this one. The caller holds mu.
func (e *endpoint) refused(failed *callError, now time.Time) {
	p := purposeOf(failed.method)
	own := failed.class == failedReply || failed.class == failedThrottled ||
		failed.class == failedHTTP && p != Everything
	if !own || e.private || aboutRequest(failed) {
		return
	}
	run := e.errs[p]
	if run == nil {
		run = &ownErrors{}
		e.errs[p] = run
	}
	if run.add(now) && e.served.byOthers(p, e.name, run.since) {
		reason := ReasonUnserved
		if p == Everything {
			reason = ReasonRefusing
		}
		e.exclude(p, reason, fmt.Sprintf("all %d answers of the last %s were errors of its own, the last: %s",
			run.count, now.Sub(run.since).Round(time.Second), brief(failed.err.Error())))
	}
}

// throttled takes how long the node's gateway wants no requests, 0 if it did not say.
func (e *endpoint) throttled(pause time.Duration) { e.bucket.refused(time.Now(), pause) }

// exclude takes the endpoint out for a purpose, and reports whether it was in before. The caller holds mu.
func (e *endpoint) exclude(p Purpose, r Reason, detail string) bool {
	fresh := e.exclusions.add(p, r, scrub(detail, e.url), time.Now(), e.cfg.Cooldown)
	if fresh {
		e.metrics.excluded.WithLabelValues(string(e.name), string(r)).Inc()
		e.log.Warn().Str("for", string(p)).Str("reason", string(r)).Str("detail", scrub(detail, e.url)).
			Msg("evm: endpoint is excluded")
	}
	return fresh
}

// catch takes the endpoint out, and opens a dispute where its honesty is in question. The caller holds mu.
func (e *endpoint) catch(p Purpose, r Reason, why error, said ...Said) {
	if !e.exclude(p, r, why.Error()) || !r.distrusts() {
		return
	}
	d := Dispute{Endpoint: e.name, For: p, Reason: r, Detail: scrub(why.Error(), e.url), Said: said}
	if answer, is := errors.AsType[*unfitError](why); is {
		d.Question, d.Said = answer.question, []Said{e.says(answer.body)}
	}
	e.disputes.begin(d)
}

// readmit ends exclusions. The caller holds mu.
func (e *endpoint) readmit(which func(Exclusion) bool) {
	for _, x := range e.exclusions.lift(which) {
		e.metrics.excluded.WithLabelValues(string(e.name), string(x.Reason)).Dec()
		e.log.Info().Str("for", string(x.Purpose)).Str("reason", string(x.Reason)).Dur("after_ms", time.Since(x.Since)).
			Msg("evm: endpoint is taken back")
	}
}

// judge excludes and takes back for what the vitals say. The caller holds mu.
func (e *endpoint) judge() {
	const hopeless = 3
	e.when(e.vitals.streak >= hopeless, ReasonUnreachable, "several requests in a row had no answer"+e.lastly())
	e.when(e.vitals.latency > milliseconds(e.cfg.SlowAfter), ReasonSlow, "answers take too long")
	e.when(e.vitals.behind > e.cfg.MaxLag, ReasonStale, "the head is too far behind")
}

// lastly is how the last request failed, to be added to a text. The caller holds mu.
func (e *endpoint) lastly() string {
	failed, is := errors.AsType[*callError](e.last)
	if !is {
		return ""
	}
	return ", the last: " + brief(failed.err.Error())
}

func (e *endpoint) when(holds bool, r Reason, detail string) {
	if holds {
		e.exclude(Everything, r, detail)
		return
	}
	e.readmit(func(x Exclusion) bool { return x.Reason == r })
}

// sawHead notes the newest block the endpoint names, so far behind the best head.
func (e *endpoint) sawHead(head chain.BlockRef, behind time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vitals.sawHead(head, behind)
	e.judge()
}

// names notes the newest block the endpoint names, before it is compared with others.
func (e *endpoint) names(head chain.BlockRef) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vitals.head = head
}

// distrust excludes the endpoint from outside, for what was said where several were asked.
func (e *endpoint) distrust(p Purpose, r Reason, detail string, said ...Said) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catch(p, r, errors.New(detail), said...)
}

// usable returns how far the endpoint can be used for a purpose.
func (e *endpoint) usable(p Purpose) usability {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exclusions.usability(p)
}

// rank is how far the endpoint can be used for a purpose at this moment, and its score among its like.
func (e *endpoint) rank(p Purpose) (usability, float64) {
	wait := e.bucket.ready(time.Now())
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exclusions.usability(p), e.vitals.score(e.cfg.RequestTimeout) + milliseconds(wait)
}

// pausing reports whether a request would have to wait for the endpoint's rate limit.
func (e *endpoint) pausing() bool { return e.bucket.ready(time.Now()) > 0 }

func (e *endpoint) patience(method string) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.vitals.patience(method, e.cfg.HedgeAfter)
}

func (e *endpoint) head() chain.BlockRef {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.vitals.head
}

// health is nil if the last request was answered, even by a refusal or by not having what was asked for; not where
// refusals are all that there is.
func (e *endpoint) health() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if failed, is := errors.AsType[*callError](e.last); is &&
		(failed.class == failedNotFound ||
			failed.class == failedReply && !e.exclusions.has(Everything, ReasonRefusing)) {
		return nil
	}
	return e.last
}
