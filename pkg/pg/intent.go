package pg

import (
	"fmt"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// Intents is the txm.Store.
type Intents struct{ db *DB }

// Intents returns the store of intents, their transactions and receipts.
func (db *DB) Intents() Intents { return Intents{db} }

const intentColumns = `i.id, i.job, i.arm, i.signer, i.state, i.said_at, i.queued_at, coalesce(i.nonce, 0), coalesce(i.outcome, ''), coalesce(i.reason, '')`

// intentRow receives intentColumns.
type intentRow struct {
	id             int64
	job            []byte
	arm            uint32
	signer         []byte
	state          string
	said, queued   time.Time
	nonce          uint64
	outcome, cause string
}

func (r *intentRow) fields() []any {
	return []any{&r.id, &r.job, &r.arm, &r.signer, &r.state, &r.said, &r.queued, &r.nonce, &r.outcome, &r.cause}
}

func (r *intentRow) intent() (txm.Intent, error) {
	i := txm.Intent{
		ID: r.id, Arm: r.arm, Signer: addressOf(r.signer), State: txm.State(r.state), SaidAt: r.said, QueuedAt: r.queued, Nonce: r.nonce,
		Outcome: job.Outcome(r.outcome),
	}
	var err error
	if i.Job, err = decodeJob(r.job); err != nil {
		return i, fmt.Errorf("reading the job of intent %d: %w", r.id, err)
	}
	if i.Reason, err = unescape(r.cause); err != nil {
		return i, fmt.Errorf("reading the reason of intent %d: %w", r.id, err)
	}
	return i, nil
}

// receiptColumns are nullable: most intents have no receipt.
const receiptColumns = `r.tx_hash, r.block, r.block_hash, r.ok, r.gas_used, r.gas_price, r.outcome, r.reason`

// receiptRow receives receiptColumns.
type receiptRow struct {
	txHash          []byte
	block           *uint64
	blockHash       []byte
	ok              *bool
	gasUsed, price  *uint64
	outcome, reason *string
}

func (r *receiptRow) fields() []any {
	return []any{&r.txHash, &r.block, &r.blockHash, &r.ok, &r.gasUsed, &r.price, &r.outcome, &r.reason}
}

func (r *receiptRow) receipt() (*txm.Receipt, error) {
	if r.block == nil {
		return nil, nil //nolint:nilnil // an intent without a receipt is no error
	}
	reason, err := unescape(*r.reason)
	if err != nil {
		return nil, fmt.Errorf("reading the reason of transaction %x: %w", r.txHash, err)
	}
	receipt := &txm.Receipt{
		TxHash: hashOf(r.txHash), OK: *r.ok, GasUsed: *r.gasUsed, GasPrice: *r.price, Outcome: job.Outcome(*r.outcome), Reason: reason,
	}
	receipt.Block.Number, receipt.Block.Hash = *r.block, hashOf(r.blockHash)
	return receipt, nil
}
