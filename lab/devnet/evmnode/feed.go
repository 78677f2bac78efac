package evmnode

import (
	"sync"

	"github.com/ethereum/go-ethereum/core/types"
)

// event is one visible change of the chain: a block or a whole fork.
type event struct {
	logs  []*types.Log // Removed ones first.
	heads []*types.Header
}

// feed gives every subscriber every event, in order. A slow subscriber delays nobody; its queue grows.
type feed struct {
	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
}

type subscriber struct {
	feed  *feed
	mu    sync.Mutex
	queue []event
	ready chan struct{} // Holds a token when the queue may not be empty.
}

func (f *feed) subscribe() *subscriber {
	s := &subscriber{feed: f, ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscribers == nil {
		f.subscribers = map[*subscriber]struct{}{}
	}
	f.subscribers[s] = struct{}{}
	return s
}

func (f *feed) publish(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscribers {
		s.push(e)
	}
}

func (s *subscriber) push(e event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (s *subscriber) take() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.queue
	s.queue = nil
	return taken
}

func (s *subscriber) close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	delete(s.feed.subscribers, s)
}
