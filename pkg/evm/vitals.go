package evm

import (
	"math"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// vitals are what is known of how well an endpoint answers. The floats only rank endpoints.
type vitals struct {
	latency  float64        // milliseconds an answer takes, exponentially weighted; 0 until the first
	failures float64        // share of requests without a usable answer, exponentially weighted
	streak   int            // failures in a row
	head     chain.BlockRef // newest block it named
	lag      float64        // milliseconds of chain time its head is behind the best, exponentially weighted
	behind   time.Duration  // the same when it last named a head
	windows  map[string]*window
}

const (
	latencyWeight = 0.2
	failureWeight = 0.1
	lagWeight     = 0.3
)

// answered notes an answer and how long it took.
func (v *vitals) answered(method string, took time.Duration) {
	// they ask for as much as the node gives: how long that takes is no measure of it
	if method != labelBatch {
		v.observe(took)
	}
	v.failures *= 1 - failureWeight
	v.streak = 0
	if v.windows == nil {
		v.windows = map[string]*window{}
	}
	w := v.windows[method]
	if w == nil {
		w = &window{}
		v.windows[method] = w
	}
	w.add(took)
}

// failed notes a request without a usable answer.
func (v *vitals) failed() {
	v.failures += failureWeight * (1 - v.failures)
	v.streak++
}

// overtaken notes that another endpoint was faster: the answer would have taken at least this long.
func (v *vitals) overtaken(after time.Duration) {
	if milliseconds(after) > v.latency {
		v.observe(after)
	}
}

func (v *vitals) observe(took time.Duration) {
	if v.latency == 0 {
		v.latency = milliseconds(took)
		return
	}
	v.latency += latencyWeight * (milliseconds(took) - v.latency)
}

// sawHead notes the newest block the endpoint names, and how far behind the best head it is.
func (v *vitals) sawHead(head chain.BlockRef, behind time.Duration) {
	v.head, v.behind = head, behind
	v.lag += lagWeight * (milliseconds(behind) - v.lag)
}

// score is the time in milliseconds after which a good answer about the newest block is to be expected: what an answer
// takes, what a failure costs times how often there is one, and how late the endpoint learns of blocks. Lower is
// better.
func (v *vitals) score(timeout time.Duration) float64 {
	return v.latency + v.failures*milliseconds(timeout) + v.lag
}

// patience is how long an answer to a method is waited for before somebody else is asked too: what 95 % of the answers
// took, at most bound.
func (v *vitals) patience(method string, bound time.Duration) time.Duration {
	const least = 10 * time.Millisecond
	w := v.windows[method]
	if w == nil || w.count < enoughSamples {
		return bound
	}
	return min(max(w.p95(), least), bound)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// window holds the last times that answers to one method took.
type window struct {
	times [64]time.Duration
	count int // ever added
}

// enoughSamples is how many answers say something about the next.
const enoughSamples = 16

func (w *window) add(took time.Duration) {
	w.times[w.count%len(w.times)] = took
	w.count++
}

func (w *window) p95() time.Duration {
	sorted := slices.Sorted(slices.Values(w.times[:min(w.count, len(w.times))]))
	return sorted[int(math.Ceil(0.95*float64(len(sorted))))-1]
}
