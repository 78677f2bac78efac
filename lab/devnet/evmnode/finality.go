package evmnode

import (
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// finality remembers where the tags `safe` and `finalized` were held. Not held, they follow the head.
type finality struct {
	mu              sync.Mutex
	held            bool
	safe, finalized uint64
}

func (f *finality) hold(safe, finalized uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		f.held, f.safe, f.finalized = true, safe, finalized
	}
}

func (f *finality) isHeld() bool {
	held, _, _ := f.state()
	return held
}

// state is where the tags are held, if they are.
func (f *finality) state() (held bool, safe, finalized uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held, f.safe, f.finalized
}

func (f *finality) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = false
}

// tags returns the block numbers of safe and finalized for a head.
func (f *finality) tags(head, safeLag, finalizedLag uint64) (safe, finalized uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held {
		return f.safe, f.finalized
	}
	return lagging(head, safeLag), lagging(head, finalizedLag)
}

func lagging(head, lag uint64) uint64 { return head - min(head, lag) }

// Errors of block look-up, with the texts of a node.
var (
	errHeaderNotFound = errors.New("header not found")
	errHashNotFound   = errors.New("header for hash not found")
	errHashNotOnChain = errors.New("hash is not currently canonical")
	errUnknownBlock   = errors.New("unknown block")
	errBlockRef       = errors.New("invalid arguments; neither block nor hash specified")
)

// number resolves a tag or number to a block number, which may lie in the future.
func (n *Node) number(tag rpc.BlockNumber) uint64 {
	head := n.Head().Number.Uint64()
	safe, finalized := n.finality.tags(head, n.cfg.SafeLag, n.cfg.FinalizedLag)
	switch tag {
	case rpc.LatestBlockNumber, rpc.PendingBlockNumber:
		return head
	case rpc.SafeBlockNumber:
		return safe
	case rpc.FinalizedBlockNumber:
		return finalized
	case rpc.EarliestBlockNumber:
		return 0
	}
	return uint64(tag)
}

// headerByNumber returns nil for a block that is not there yet.
func (n *Node) headerByNumber(tag rpc.BlockNumber) *types.Header {
	if tag == rpc.LatestBlockNumber || tag == rpc.PendingBlockNumber {
		return n.Head()
	}
	number := n.number(tag)
	if number > n.Head().Number.Uint64() {
		return nil // A fork may have written further than clients may see yet.
	}
	return n.chain.GetHeaderByNumber(number)
}

// headerByHash returns nil for an unknown hash and for a block that a Drop fork took away.
func (n *Node) headerByHash(hash common.Hash) *types.Header {
	if _, gone := n.forgotten.Load(hash); gone {
		return nil
	}
	return n.chain.GetHeaderByHash(hash)
}

// header resolves the block argument of state calls. It is an error when there is no such block.
func (n *Node) header(ref *rpc.BlockNumberOrHash) (*types.Header, error) {
	if ref == nil {
		return n.Head(), nil
	}
	if number, ok := ref.Number(); ok {
		if h := n.headerByNumber(number); h != nil {
			return h, nil
		}
		return nil, errHeaderNotFound
	}
	hash, ok := ref.Hash()
	if !ok {
		return nil, errBlockRef
	}
	h := n.headerByHash(hash)
	if h == nil {
		return nil, errHashNotFound
	}
	if ref.RequireCanonical && n.chain.GetCanonicalHash(h.Number.Uint64()) != hash {
		return nil, errHashNotOnChain
	}
	return h, nil
}
