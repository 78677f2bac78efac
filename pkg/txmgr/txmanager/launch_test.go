package txmanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg/txstore"
)

// silent is a node that has a transaction and does not say so yet.
type silent struct {
	Node
	has, answer chan struct{}
}

func (n silent) SendRaw(context.Context, []byte) error {
	n.has <- struct{}{}
	<-n.answer
	return nil
}

// slowNode is a worker's broadcast to a node that is silent, with a store that fails. The worker is woken by failures.
func slowNode(t *testing.T) (b *broadcast, n silent, woken <-chan struct{}) {
	t.Helper()
	n = silent{has: make(chan struct{}, 8), answer: make(chan struct{})}
	o := newQueueTest(t, nil)
	o.db.Close()
	w := &worker{queued: make(chan struct{}, 1), log: zerolog.Nop(), Parts: Parts{Node: n,
		Heads: headsAt(nowMs, time.Now()), Intents: txstore.NewIntents(o.db), Metrics: o.metrics}}
	return w.broadcast(o.term), n, w.queued
}

// A slow node's answer keeps no other task from its nonce. What goes wrong with a launch ends the next pass.
func TestLaunchWaitsForNoAnswer(t *testing.T) {
	b, n, failed := slowNode(t)
	b.launches.beside = true
	b.launch(t.Context(), []*Task{{}})
	<-n.has
	b.launch(t.Context(), []*Task{{}})
	<-n.has
	if err := b.launches.err(); err != nil {
		t.Errorf("before the answer: %v", err)
	}
	n.answer <- struct{}{}
	<-failed
	if err := b.launches.err(); err == nil {
		t.Error("nobody hears that the answer could not be noted")
	}
	if err := b.launches.err(); err != nil {
		t.Errorf("it is told twice: %v", err)
	}
	ended := make(chan struct{})
	go func() { b.close(); close(ended) }()
	n.answer <- struct{}{}
	<-ended
	if err := b.launches.err(); err == nil {
		t.Error("the lease term ended before its launches")
	}
}

// Who simulates time gets no goroutine: a launch is over when it returns.
func TestSteppedLaunchIsOver(t *testing.T) {
	b, n, failed := slowNode(t)
	close(n.answer)
	b.launch(t.Context(), []*Task{{}})
	select {
	case <-failed:
	default:
		t.Error("the launch goes on")
	}
}

// What a launch could not do ends the pass that follows, before anything is taken.
func TestDrainLearnsOfLaunches(t *testing.T) {
	o := newQueueTest(t, nil)
	lost := errors.New("the answer was not noted")
	o.launched = func() error { return lost }
	o.queue(t, "a")
	if err := o.pass(t.Context()); !errors.Is(err, lost) || len(o.trail) != 0 || o.counted {
		t.Errorf("%v, after %v, counted %t", err, o.trail, o.counted)
	}
}
