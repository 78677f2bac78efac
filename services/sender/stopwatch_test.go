package sender

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/sender/preflight"
)

// moment is one on the road of a job from the topic to the nodes, in their order.
type moment int

const (
	published moment = iota // given to the topic
	received                // read off it
	looked                  // what it is checked by was read
	called                  // the simulated call begins
	stored                  // queued in Postgres
	picked                  // taken from the queue by its signer
	simulated               // and has been answered
	signed                  // the claim's statement begins
	claimed                 // number and bytes are stored
	broadcast               // the bytes are given to the nodes
	moments
)

// stretch names what is done until a moment, since the one before.
var stretch = [moments]string{
	received: "topic", stored: "enqueue", picked: "queue", looked: "look", called: "check", simulated: "simulate",
	signed: "sign", claimed: "claim", broadcast: "launch",
}

// stopwatch notes when jobs come in from the topic, when a claim is made, and when bytes are first given to the nodes.
// Where one job is on the road at a time it notes the moments between as well.
type stopwatch struct {
	received, claimed, sent chan time.Time

	mu   sync.Mutex
	seen map[chain.Hash]bool
	last [moments]time.Time
}

func newStopwatch() *stopwatch {
	const enough = 1000
	return &stopwatch{
		received: make(chan time.Time, enough), claimed: make(chan time.Time, enough),
		sent: make(chan time.Time, enough), seen: map[chain.Hash]bool{},
	}
}

func (w *stopwatch) on(s *Sender) {
	s.intents, s.node, s.state = watchedIntents{s.intents, w}, watchedNode{s.node, w}, watchedState{s.state, w}
}

// begin reports that the next job is about to be given to the topic.
func (w *stopwatch) begin() { w.note(published) }

// note notes a moment as of now. Of what is done several times the last counts, but nothing does after the broadcast:
// what is in flight is looked at as well.
func (w *stopwatch) note(m moment) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch {
	case m == published:
		w.last = [moments]time.Time{}
	case !w.last[broadcast].IsZero():
		return now
	}
	w.last[m] = now
	return now
}

// came notes that a job was read off the topic. Its rows may have been asked for already, see watchedState.
func (w *stopwatch) came() time.Time {
	w.mu.Lock()
	begun := w.last[received]
	w.mu.Unlock()
	if !begun.IsZero() {
		return begun
	}
	return w.note(received)
}

// stretches are how long, in ms, each part of the last job's road took, by its name. What two of them do at once is
// counted with the earlier in the order of the moments: of the storing it is what was not done when the look was, and
// of the simulated call what it took after its job was picked. "call-alone" has all of that, and is no part of the sum.
func (w *stopwatch) stretches() map[string]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	took, until := map[string]float64{}, w.last[published]
	for m := received; m < moments; m++ {
		took[stretch[m]] = max(0, inMs(w.last[m].Sub(until)))
		if w.last[m].After(until) {
			until = w.last[m]
		}
	}
	took["call-alone"] = inMs(w.last[simulated].Sub(w.last[called]))
	return took
}

// inMs is a time in ms, to a microsecond.
func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

type watchedIntents struct {
	txm.Store
	w *stopwatch
}

func (i watchedIntents) Enqueue(ctx context.Context, j job.Job) (txm.Admission, error) {
	i.w.received <- i.w.came()
	defer i.w.note(stored)
	return i.Store.Enqueue(ctx, j)
}

func (i watchedIntents) Heads(ctx context.Context, signer chain.Address, p txm.Pick) ([]txm.Intent, error) {
	heads, err := i.Store.Heads(ctx, signer, p)
	if len(heads) > 0 {
		i.w.note(picked)
	}
	return heads, err
}

func (i watchedIntents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	i.w.note(signed)
	err := i.Store.Claim(ctx, f, b)
	if err == nil {
		i.w.claimed <- i.w.note(claimed)
	}
	return err
}

type watchedState struct {
	preflight.State
	w *stopwatch
}

func (s watchedState) Look(ctx context.Context, k pg.Keys) (pg.Rows, error) {
	s.w.came()
	defer s.w.note(looked)
	return s.State.Look(ctx, k)
}

type watchedNode struct {
	node
	w *stopwatch
}

func (n watchedNode) Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64,
	value perp.Uint) (evm.Source, error) {
	n.w.note(called)
	defer n.w.note(simulated)
	return n.node.Simulate(ctx, from, to, data, gas, value)
}

func (n watchedNode) SendRaw(ctx context.Context, raw []byte) error {
	hash := chain.Keccak256(raw)
	n.w.mu.Lock()
	first := !n.w.seen[hash]
	n.w.seen[hash] = true
	n.w.mu.Unlock()
	if first {
		n.w.sent <- n.w.note(broadcast)
	}
	return n.node.SendRaw(ctx, raw)
}
