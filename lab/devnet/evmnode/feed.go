package evmnode

import (
	"sync"

	"github.com/ethereum/go-ethereum/core/types"
)

// feed gives every subscriber every new head, in order. A slow subscriber delays nobody; its queue grows.
type feed struct {
	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
}

type subscriber struct {
	feed  *feed
	mu    sync.Mutex
	queue []*types.Header
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

func (f *feed) publish(heads []*types.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscribers {
		s.push(heads)
	}
}

func (s *subscriber) push(heads []*types.Header) {
	s.mu.Lock()
	s.queue = append(s.queue, heads...)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (s *subscriber) take() []*types.Header {
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
