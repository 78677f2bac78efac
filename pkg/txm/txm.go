package txm

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// MaxGas is the most gas one transaction may ask for on BSC.
const MaxGas = 16_777_216

// SignedTx is a transaction as it is stored and broadcast.
type SignedTx struct {
	Nonce uint64
	Gas   uint64
	// Tip and Cap are wei per gas. They are equal where the base fee is zero, as on BSC: the effective price is the smaller of the two.
	Tip, Cap uint64
	// Hash is what the chain knows the bytes by.
	Hash chain.Hash
	Raw  []byte
}

// Intent is one arm of a job.
type Intent struct {
	ID     int64
	Job    job.Job
	Arm    uint32
	Signer chain.Address
	State  State
	// SaidAt is when a planner last said that the job is live, by that planner's clock; QueuedAt is when the arm was stored, by the database's.
	SaidAt, QueuedAt time.Time
	// Nonce has a meaning from Signed on.
	Nonce uint64
	// Outcome and Reason are set at the end, and by a receipt.
	Outcome job.Outcome
	Reason  string
}

// Attempt is one signed transaction of an intent, as stored. All attempts of an intent have the same nonce.
type Attempt struct {
	SignedTx
	// Seq counts the attempts at one nonce, from 1.
	Seq uint32
	// Sends counts the broadcasts that were noted, and LastClass is what the last one was answered with; a broadcast may have been made and not noted.
	Sends     uint32
	LastClass string
}

// Receipt is a transaction found in a block.
type Receipt struct {
	TxHash chain.Hash
	// Block holds number and hash; parent and time may be missing.
	Block    chain.BlockRef
	OK       bool
	GasUsed  uint64
	GasPrice uint64 // wei
	// Outcome is what the logs, or the cause of the revert, say.
	Outcome job.Outcome
	Reason  string
}

// Same tells whether two receipts are of the same transaction in the same block.
func (r Receipt) Same(o Receipt) bool { return r.TxHash == o.TxHash && r.Block.Hash == o.Block.Hash }

// Flight is an intent whose nonce is given and whose fate is open.
type Flight struct {
	Intent   Intent
	Attempts []Attempt // of the nonce, oldest first; never empty
	Mined    *Receipt  // as stored; set if and only if the intent is Mined
}

// Newest is the attempt that is broadcast: the last one pays the most.
func (f Flight) Newest() Attempt { return f.Attempts[len(f.Attempts)-1] }

// Hashes are those of all attempts: any of them may have been mined.
func (f Flight) Hashes() []chain.Hash {
	hashes := make([]chain.Hash, len(f.Attempts))
	for i, a := range f.Attempts {
		hashes[i] = a.Hash
	}
	return hashes
}
