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
	// Tip and Cap are wei per gas. They are equal where the base fee is zero, as on BSC: the effective price is the
	// smaller of the two.
	Tip, Cap uint64
	// Hash is what the chain knows the bytes by.
	Hash chain.Hash
	Raw  []byte
}

// Intent is one attempt of a job.
type Intent struct {
	ID      int64
	Job     job.Job
	Attempt uint32
	Signer  chain.Address
	State   State
	// Tries counts the attempts before this one that failed, back to the last one that did not.
	Tries uint32
	// ObservedMs is the chain's time (ms) of the state in which a planner last found the job.
	ObservedMs uint64
	// Waited is how long ago the attempt was stored when it was read, by the store's clock alone.
	Waited time.Duration
	// Nonce has a meaning from Signed on.
	Nonce uint64
	// Outcome and Reason are set at the end, and by a receipt.
	Outcome job.Outcome
	Reason  string
	GivenUp bool // see Rest
	// Cancel is how the attempt ends if a transaction is mined that only frees the nonce. It has an outcome from the
	// first such transaction on.
	Cancel Verdict
	// CalledOff is who wants the nonce back, and why; empty for nobody. It is an operator's wish, and what the chain
	// holds comes before it.
	CalledOff string
}

// Verdict is how an attempt ends, and why.
type Verdict struct {
	Outcome job.Outcome
	Reason  string
}

// TxKind is what a transaction is for.
type TxKind string

// The kinds of transactions.
const (
	Exec TxKind = "EXEC" // does the job
	// Cancel: frees the nonce of a job that is not to be done any more: a payment to oneself of 1 wei at most.
	Cancel TxKind = "CANCEL"
	Fill   TxKind = "FILL" // spends a number that nobody needs, so that those above it can be mined
)

// EmptyGas is what a payment to oneself burns.
const EmptyGas = 21_000

// Filler is the kind of the jobs that are a sender's own: to spend a number. No planner publishes them and nobody is
// notified of them.
const Filler job.Kind = "fill"

// Tx is one signed transaction of an intent, as stored. All transactions of an intent have the same nonce.
type Tx struct {
	SignedTx
	Kind TxKind
	// Seq counts the transactions at one nonce, from 1.
	Seq uint32
	// Sends counts the broadcasts that were noted, and LastClass is what the last one was answered with; a broadcast
	// may have been made and not noted.
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
	// Settlement is what the transaction came to for a position's owner; nil where it did nothing to a position.
	Settlement *job.Settlement
}

// Same reports whether two receipts are of the same transaction in the same block.
func (r Receipt) Same(o Receipt) bool { return r.TxHash == o.TxHash && r.Block.Hash == o.Block.Hash }

// PendingTx is an intent whose nonce is given and whose fate is open.
type PendingTx struct {
	Intent Intent
	Txs    []Tx // of the nonce, oldest first; never empty
	// Age is how long ago the nonce was given when it was read, by the store's clock alone.
	Age   time.Duration
	Mined *Receipt // as stored; set if and only if the intent is Mined
}

// Newest is the transaction that is broadcast: the last one pays the most.
func (f PendingTx) Newest() Tx { return f.Txs[len(f.Txs)-1] }

// Leaving reports whether the pending transaction's job was given up: its newest transaction only frees the nonce, and
// no later one will do the job.
func (f PendingTx) Leaving() bool { return f.Newest().Kind != Exec }

// Of returns the transaction with a hash.
func (f PendingTx) Of(hash chain.Hash) (a Tx, known bool) {
	for _, a := range f.Txs {
		if a.Hash == hash {
			return a, true
		}
	}
	return Tx{}, false
}

// Hashes are those of all transactions: any of them may have been mined.
func (f PendingTx) Hashes() []chain.Hash {
	hashes := make([]chain.Hash, len(f.Txs))
	for i, a := range f.Txs {
		hashes[i] = a.Hash
	}
	return hashes
}
