// Package chain holds the types of an EVM chain: hashes, addresses, 256-bit integers, blocks, logs,
// transactions and reorgs.
//
// It holds values only. It knows no JSON-RPC, no contract and no database; every other package may import it, and it
// imports nothing of this module.
package chain

// BlockRef names one block: a number alone never does, because several branches may hold it.
type BlockRef struct {
	Number uint64
	Hash   Hash
	Parent Hash
	// TimeMs is the block's time in Unix milliseconds (BSC's milliTimestamp). It may repeat and must never order
	// blocks.
	TimeMs uint64
}

// UndoHorizon is how many blocks below the tip readers can undo. A reorg that is deeper cannot be followed. The
// state keeps its journal so far, the scanner the blocks it has written, and whoever folds the log topic what it has
// returned.
const UndoHorizon = 1000

// Follows reports whether b is the direct child of parent.
func (b BlockRef) Follows(parent BlockRef) bool {
	return b.Number == parent.Number+1 && b.Parent == parent.Hash
}

// LogPos is the order of a log in the chain: by block, then by log index.
type LogPos struct {
	Block uint64
	Index uint32
}

// Before reports whether p comes earlier on the chain than q.
func (p LogPos) Before(q LogPos) bool {
	return p.Block < q.Block || p.Block == q.Block && p.Index < q.Index
}

// Log is one event log as the node reported it, undecoded. Its identity is (BlockHash, Index) within a chain.
type Log struct {
	Address   Address
	Topics    []Hash
	Data      []byte
	Block     uint64
	BlockHash Hash
	TxHash    Hash
	TxIndex   uint32
	Index     uint32
}

// Pos returns the log's place in the chain's order.
func (l Log) Pos() LogPos { return LogPos{Block: l.Block, Index: l.Index} }

// Tx is a mined transaction: its sender and its status. No log holds these, so it travels beside the logs.
type Tx struct {
	Hash      Hash
	From      Address
	To        Address // zero for a contract creation
	Nonce     uint64
	Block     uint64
	BlockHash Hash
	Index     uint32
	// OK is the receipt's status. A transaction that is OK may still have cancelled or frozen the order it carried.
	OK      bool
	GasUsed uint64
	// GasPrice is the effective price in wei. 64 bits hold 18 BNB per unit of gas.
	GasPrice uint64
}

// Reorg means that every block above Ancestor up to OldTip has left the canonical chain.
type Reorg struct {
	Ancestor BlockRef
	OldTip   BlockRef
}
