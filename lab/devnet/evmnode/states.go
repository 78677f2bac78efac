package evmnode

import (
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
)

// states opens states for whoever reads or executes on them. What was read of the state that was opened last is kept,
// as a node's caches keep what is read of its head: the next call there does not look it up in the tries again. A
// state's root is the hash of all that is in it, so that what is kept is never out of date. It is safe for concurrent
// use.
type states struct {
	db *state.MPTDatabase

	mu   sync.Mutex
	root common.Hash  // of the state that was opened last
	kept state.Reader // nil before the first
}

// at opens the state of a root. Changes made to it are the caller's alone.
func (s *states) at(root common.Hash) (*state.StateDB, error) {
	reader, err := s.reader(root)
	if err != nil {
		return nil, fmt.Errorf("opening the state of root %s: %w", root, err)
	}
	return state.NewWithReader(root, s.db, reader)
}

func (s *states) reader(root common.Hash) (state.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil && s.root == root {
		return s.kept, nil
	}
	reader, _, err := s.db.ReadersWithCacheStats(root)
	if err != nil {
		return nil, err
	}
	s.root, s.kept = root, reader
	return reader, nil
}
