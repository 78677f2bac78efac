package evmnode

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
)

// Image is a chain as it was at some moment: its blocks, all its states, where it is anchored and what of it is final.
// Any number of nodes may begin with it, each of which goes on with a chain of its own. What waited in the pool, faults
// and stalls of the head are not in it.
type Image struct {
	entries   map[string][]byte // of the store
	chainID   *big.Int
	head      *types.Header
	anchor    uint64
	forks     uint64
	forgotten []common.Hash
	held      bool
	safe      uint64
	finalized uint64
}

// Image returns the chain as it is now.
func (n *Node) Image() (*Image, error) {
	n.writing.Lock()
	defer n.writing.Unlock()
	i := &Image{entries: map[string][]byte{}, chainID: n.ChainID(), head: n.Head(), anchor: n.anchor, forks: n.forks}
	i.held, i.safe, i.finalized = n.finality.state()
	for hash := range n.forgotten.Range {
		i.forgotten = append(i.forgotten, hash.(common.Hash)) //nolint:forcetypeassert // nothing else is in it
	}
	all := n.db.NewIterator(nil, nil)
	defer all.Release()
	for all.Next() {
		i.entries[string(all.Key())] = bytes.Clone(all.Value())
	}
	if err := all.Error(); err != nil {
		return nil, fmt.Errorf("copying the chain: %w", err)
	}
	return i, nil
}

// into fills an empty store. No image leaves it empty.
func (i *Image) into(db ethdb.Database) error {
	if i == nil {
		return nil
	}
	for key, value := range i.entries {
		if err := db.Put([]byte(key), value); err != nil {
			return fmt.Errorf("copying a chain: %w", err)
		}
	}
	return nil
}

// suits refuses a configuration that asks for another chain than this.
func (i *Image) suits(cfg Config) error {
	if i == nil || i.chainID.Uint64() == cfg.ChainID && i.head.GasLimit == cfg.GasLimit {
		return nil
	}
	return fmt.Errorf("the chain to begin with has id %s and blocks of %d gas, not id %d and blocks of %d gas",
		i.chainID, i.head.GasLimit, cfg.ChainID, cfg.GasLimit)
}

// goOn takes over what of a chain is not in its store.
func (n *Node) goOn(i *Image) {
	if i == nil {
		return
	}
	n.anchor, n.forks = i.anchor, i.forks
	for _, hash := range i.forgotten {
		n.forgotten.Store(hash, struct{}{})
	}
	if i.held {
		n.finality.hold(i.safe, i.finalized)
	}
}
