package outbox

import (
	"fmt"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

// Intents is the txm.Store.
type Intents struct{ db *pg.DB }

// NewIntents returns the store of intents, their transactions and receipts.
func NewIntents(db *pg.DB) Intents { return Intents{db} }

const intentColumns = `i.id, i.job, i.arm, i.tries, i.signer, i.state, i.said_ms,
	(extract(epoch FROM clock_timestamp() - i.queued_at) * 1000000)::bigint, coalesce(i.nonce, 0), coalesce(i.outcome,
		''), coalesce(i.reason, ''),
	i.given_up, coalesce(i.cancel_outcome, ''), coalesce(i.cancel_reason, ''), coalesce(i.called_off, '')`

// intentRow receives intentColumns.
type intentRow struct {
	id                     int64
	job                    []byte
	arm, tries             uint32
	signer                 []byte
	state                  string
	said                   uint64
	waited                 int64 // microseconds
	nonce                  uint64
	outcome, cause         string
	givenUp                bool
	cancelled, cancelCause string
	calledOff              string
}

func (r *intentRow) fields() []any {
	return []any{
		&r.id, &r.job, &r.arm, &r.tries, &r.signer, &r.state, &r.said, &r.waited, &r.nonce, &r.outcome, &r.cause,
		&r.givenUp, &r.cancelled, &r.cancelCause,
		&r.calledOff,
	}
}

func (r *intentRow) intent() (txm.Intent, error) {
	i := txm.Intent{
		ID: r.id, Arm: r.arm, Tries: r.tries, Signer: pg.AddressOf(r.signer), State: txm.State(r.state), SaidMs: r.said,
		Waited: time.Duration(r.waited) * time.Microsecond, Nonce: r.nonce, Outcome: job.Outcome(r.outcome),
		GivenUp: r.givenUp,
		Cancel:  txm.Verdict{Outcome: job.Outcome(r.cancelled)},
	}
	var err error
	if i.Job, err = decodeJob(r.job); err != nil {
		return i, fmt.Errorf("reading the job of intent %d: %w", r.id, err)
	}
	for into, stored := range map[*string]string{&i.Reason: r.cause, &i.Cancel.Reason: r.cancelCause,
		&i.CalledOff: r.calledOff} {
		if *into, err = pg.Unescape(stored); err != nil {
			return i, fmt.Errorf("reading the reason of intent %d: %w", r.id, err)
		}
	}
	return i, nil
}

// receiptColumns are nullable: most intents have no receipt.
const receiptColumns = `r.tx_hash, r.block, r.block_hash, r.ok, r.gas_used, r.gas_price, r.outcome, r.reason,
	r.settlement`

// receiptRow receives receiptColumns.
type receiptRow struct {
	txHash          []byte
	block           *uint64
	blockHash       []byte
	ok              *bool
	gasUsed, price  *uint64
	outcome, reason *string
	settlement      []byte
}

func (r *receiptRow) fields() []any {
	return []any{&r.txHash, &r.block, &r.blockHash, &r.ok, &r.gasUsed, &r.price, &r.outcome, &r.reason, &r.settlement}
}

func (r *receiptRow) receipt() (*txm.Receipt, error) {
	if r.block == nil {
		return nil, nil //nolint:nilnil // an intent without a receipt is no error
	}
	reason, err := pg.Unescape(*r.reason)
	if err != nil {
		return nil, fmt.Errorf("reading the reason of transaction %x: %w", r.txHash, err)
	}
	receipt := &txm.Receipt{
		TxHash: pg.HashOf(r.txHash), OK: *r.ok, GasUsed: *r.gasUsed, GasPrice: *r.price,
		Outcome: job.Outcome(*r.outcome),
		Reason:  reason,
	}
	receipt.Block.Number, receipt.Block.Hash = *r.block, pg.HashOf(r.blockHash)
	if receipt.Settlement, err = decodeSettlement(r.settlement); err != nil {
		return nil, fmt.Errorf("reading the settlement of transaction %x: %w", r.txHash, err)
	}
	return receipt, nil
}
