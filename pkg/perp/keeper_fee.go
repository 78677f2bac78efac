package perp

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
)

// KeeperFee is KeeperExecutionFee: what the exchange paid a keeper's signer for one execution. A transaction may pay
// several.
type KeeperFee struct {
	Keeper chain.Address `json:"keeper"`
	Amount Uint          `json:"amount"` // wei
	Stamp  Stamp         `json:"stamp"`
}

// RowKey implements [Row]. The identity is the log's place in its transaction.
func (f KeeperFee) RowKey() RowKey {
	return RowKey{KeeperFees, chain.Keccak256(f.Stamp.TxHash[:], binary.BigEndian.AppendUint32(nil, f.Stamp.Log))}
}

// KeeperPaid is KeeperExecutionFee.
type KeeperPaid struct{ Fee KeeperFee }

// Touches implements [Event].
func (e KeeperPaid) Touches() []RowKey { return []RowKey{e.Fee.RowKey()} }
