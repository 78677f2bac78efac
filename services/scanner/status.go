package scanner

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
)

// status is what the scanner is at, for readiness, metrics and the status page.
type status struct {
	metrics *Metrics

	mu        sync.Mutex
	busy      string // what it does before it follows the head; empty when it does
	head      chain.BlockRef
	tip       chain.BlockRef // the newest block this scanner has published to all partitions
	finalized chain.BlockRef
	epoch     uint64
	words     error     // why the last audit of words did not pass
	finality  error     // why no block is called final
	since     time.Time // when that began
}

func newStatus(metrics *Metrics) *status { return &status{metrics: metrics, busy: "starting"} }

// set sets what the scanner is busy with; empty means that it follows the head.
func (s *status) set(busy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = busy
	s.metrics.standingBy.Set(0)
}

// fail reports why the scanner cannot go on at the moment.
func (s *status) fail(err error) {
	s.set(err.Error())
	if waits, is := errors.AsType[*unprovenError](err); is {
		s.metrics.unproven.Set(float64(waits.block))
	}
}

func (s *status) standBy(rival *replacedError) {
	s.set(fmt.Sprintf("standing by: %v", rival))
	s.audited(nil) // it is the owner's
	s.metrics.standingBy.Set(1)
	s.metrics.unproven.Set(0)
}

// saw notes a head. The same head again does not make it younger.
func (s *status) saw(head chain.BlockRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if head.Hash == s.head.Hash {
		return
	}
	s.head = head
	s.metrics.headNumber.Set(float64(head.Number))
	now := time.Now()
	s.metrics.headAt.Store(&now)
}

// reached notes the newest block that is published.
func (s *status) reached(tip chain.BlockRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tip = tip
	s.metrics.unproven.Set(0)
}

// final notes the newest block a node calls final.
func (s *status) final(block chain.BlockRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finalized = block
}

// claimed notes an epoch that begins.
func (s *status) claimed(epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch = epoch
}

// following is nil if the scanner follows the head.
func (s *status) following() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy != "" {
		return errors.New(s.busy)
	}
	return nil
}

// fresh is nil if a head came within the given time.
func (s *status) fresh(within time.Duration) error {
	age, known := s.metrics.headAge()
	switch {
	case !known:
		return errors.New("no head yet")
	case age > within:
		return fmt.Errorf("no new head for %s", age.Truncate(time.Second))
	}
	return nil
}

// newest is the number of the newest head seen.
func (s *status) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Number
}

// decided notes whether endpoints agree on a final block.
func (s *status) decided(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finality == nil && err != nil {
		s.since = time.Now()
	}
	s.finality = err
}

// agreed is nil unless endpoints have not agreed on a final block for a while.
func (s *status) agreed(patience time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finality == nil || time.Since(s.since) < patience {
		return nil
	}
	return fmt.Errorf("nothing new has been final for %s: %w", time.Since(s.since).Truncate(time.Second), s.finality)
}

// audited notes how the last audit of words ended.
func (s *status) audited(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = err
}

// wordsAudited is nil unless the last audit of words did not pass.
func (s *status) wordsAudited() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}
