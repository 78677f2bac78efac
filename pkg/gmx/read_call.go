package gmx

import (
	"encoding/binary"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Call is what a transaction's calldata asks a handler to execute, whatever became of it.
type Call struct {
	Kind job.Kind
	// Key is as in [job.Job]: that of the order or request, of the position, or the market padded.
	Key    chain.Hash
	IsLong bool // of liquidations, deleveragings and updates of a deleveraging: the side
}

// callOf names the kind of each call a keeper makes.
var callOf = map[[4]byte]job.Kind{
	selectExecuteOrder: job.Order, selectExecuteDeposit: job.Deposit, selectExecuteWithdrawal: job.Withdrawal,
	selectExecuteShift:      job.Shift,
	selectExecuteGlvDeposit: job.GlvDeposit, selectExecuteGlvWithdrawal: job.GlvWithdrawal,
	selectExecuteGlvShift:    job.GlvShift,
	selectExecuteLiquidation: job.Liquidation, selectExecuteAdl: job.Adl, selectUpdateAdlState: job.AdlState,
}

// ReadCall reads what calldata asks for: the inverse of [Config.Call], as far as it names the job. It reads the
// arguments and leaves the price reports alone, because a call may have failed over them. The answer is false for
// anything that is no call of a keeper, also for calls made through a contract.
func ReadCall(calldata []byte) (c Call, is bool) {
	if len(calldata) < 4 {
		return Call{}, false
	}
	kind, known := callOf[[4]byte(calldata[:4])]
	if !known {
		return Call{}, false
	}
	c.Kind = kind
	w := walker{data: calldata[4:]}
	switch kind {
	case job.Liquidation, job.Adl:
		c.IsLong = w.bool(3 * 32)
		c.Key = perp.PositionKey(w.address(0), w.address(32), w.address(2*32), c.IsLong)
	case job.AdlState:
		c.Key, c.IsLong = w.address(0).Hash(), w.bool(32)
	default:
		c.Key = w.word(0)
	}
	return c, w.err == nil
}

// Handlers lists the contracts that jobs are executed by, as far as they are configured.
func (c Config) Handlers() (handlers []chain.Address) {
	for _, kind := range job.Kinds() {
		if h := executions[kind].handler(c); !h.IsZero() && !slices.Contains(handlers, h) {
			handlers = append(handlers, h)
		}
	}
	return handlers
}

// OracleSecond reads how old the report was by which the exchange's oracle took a price in a transaction
// (OraclePriceUpdate): the time its signers gave it, in Unix seconds. The answer is false for any other log.
func OracleSecond(l chain.Log) (second uint64, is bool) {
	kind := eventKinds[oraclePriceUpdate]
	if topics, ok := emitterTopics(&l); !ok || topics != 1 || l.Topics[1] != oraclePriceUpdate {
		return 0, false
	}
	var r reader
	if r.load(&l, kind) != nil {
		return 0, false
	}
	word := r.uint("timestamp").Bytes32()
	second = binary.BigEndian.Uint64(word[24:])
	return second, r.err == nil && wordOf(second) == word
}
