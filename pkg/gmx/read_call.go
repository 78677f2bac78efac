package gmx

import (
	"encoding/binary"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// selectors are those of the calls, by kind: calldata is read at every transaction.
var selectors = func() map[job.Kind][4]byte {
	all := map[job.Kind][4]byte{}
	for kind, e := range executions {
		all[kind] = e.selector()
	}
	return all
}()

// Call is what a transaction's calldata asks a handler to execute, whatever became of it.
type Call struct {
	Kind job.Kind
	// Key is as in [job.Job]: that of the order or request, of the position, or the market padded.
	Key    chain.Hash
	IsLong bool // of liquidations, deleveragings and updates of a deleveraging: the side
}

// ReadCall reads what calldata asks for: the inverse of [Config.Call], as far as it names the job. It reads the
// arguments and leaves the price reports alone, because a call may have failed over them. The answer is false for
// anything that is no call of a keeper, also for calls made through a contract.
func ReadCall(calldata []byte) (c Call, is bool) {
	if len(calldata) < 4 {
		return Call{}, false
	}
	for kind, e := range executions {
		if selectors[kind] == [4]byte(calldata[:4]) {
			w := walker{data: calldata[4:]}
			c.Kind = kind
			c.Key, c.IsLong = e.read(&w)
			return c, w.err == nil
		}
	}
	return Call{}, false
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
