package txstore

import (
	"encoding/json"
	"fmt"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txm"
)

// Intents is the txm.Store.
type Intents struct{ db *pg.DB }

// NewIntents returns the store of intents, their transactions and receipts.
func NewIntents(db *pg.DB) Intents { return Intents{db} }

const intentColumns = `i.id, i.job, i.attempt, i.tries, i.signer, i.state, i.said_ms,
	(extract(epoch FROM clock_timestamp() - i.queued_at) * 1000000)::bigint, coalesce(i.nonce, 0), coalesce(i.outcome,
		''), coalesce(i.reason, ''),
	i.given_up, coalesce(i.cancel_outcome, ''), coalesce(i.cancel_reason, ''), coalesce(i.called_off, '')`

// intentRow receives intentColumns.
type intentRow struct {
	txm.Intent

	job []byte
}

func (r *intentRow) fields() []any {
	return []any{
		&r.ID, &r.job, &r.Attempt, &r.Tries, pg.Fixed(r.Signer[:]), &r.State, &r.ObservedMs, pg.Microseconds(&r.Waited),
		&r.Nonce, &r.Outcome, pg.Text(&r.Reason), &r.GivenUp, &r.Cancel.Outcome, pg.Text(&r.Cancel.Reason),
		pg.Text(&r.CalledOff),
	}
}

func (r *intentRow) intent() (i txm.Intent, err error) {
	i = r.Intent
	if i.Job, err = decodeJob(r.job); err != nil {
		return i, fmt.Errorf("reading the job of intent %d: %w", i.ID, err)
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

// receiptArrays are receipts as the parameters of one statement, a column each.
type receiptArrays struct {
	hashes, blockHashes        [][]byte
	blocks, gasUsed, gasPrices []uint64
	oks                        []bool
	outcomes, reasons          []string
	settlements                []*string // NULL where there is none
}

func receiptColumnsOf(receipts []txm.Receipt) (c receiptArrays, err error) {
	for _, r := range receipts {
		settlement, err := encodeSettlement(r.Settlement)
		if err != nil {
			return c, fmt.Errorf("writing the settlement of transaction %s: %w", r.TxHash, err)
		}
		c.hashes, c.blockHashes = append(c.hashes, r.TxHash[:]), append(c.blockHashes, r.Block.Hash[:])
		c.blocks, c.oks = append(c.blocks, r.Block.Number), append(c.oks, r.OK)
		c.gasUsed, c.gasPrices = append(c.gasUsed, r.GasUsed), append(c.gasPrices, r.GasPrice)
		c.outcomes, c.reasons = append(c.outcomes, string(r.Outcome)), append(c.reasons, pg.Escape(r.Reason))
		c.settlements = append(c.settlements, settlement)
	}
	return c, nil
}

// finalArrays are the ends of intents as the parameters of one statement, a column each.
type finalArrays struct {
	hashes, blockHashes [][]byte
	states              []string
	retryAfter          []uint64
	givenUp             []bool
}

func finalColumnsOf(finals []txm.FinalReceipt) (c finalArrays) {
	for _, f := range finals {
		c.hashes, c.blockHashes = append(c.hashes, f.TxHash[:]), append(c.blockHashes, f.Block.Hash[:])
		c.states = append(c.states, string(txm.Final(f.Outcome)))
		c.retryAfter, c.givenUp = append(c.retryAfter, f.RetryAfterMs), append(c.givenUp, f.GivenUp)
	}
	return c
}

// encodeSettlement writes a settlement as column settlement of tx_receipt holds it: a document with the names of its
// JSON form, its texts escaped; NULL where there is none.
func encodeSettlement(s *job.Settlement) (*string, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // most transactions settle nothing, which is no error
	}
	stored := *s
	stored.BadDebtStep = pg.Escape(s.BadDebtStep)
	text, err := json.Marshal(stored)
	return new(string(text)), err
}

func decodeSettlement(text []byte) (*job.Settlement, error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // most transactions settle nothing, which is no error
	}
	s := new(job.Settlement)
	err := json.Unmarshal(text, s)
	if err == nil {
		s.BadDebtStep, err = pg.Unescape(s.BadDebtStep)
	}
	return s, err
}
