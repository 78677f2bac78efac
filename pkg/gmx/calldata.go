package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// SetPrices are the price reports of one execution (OracleUtils.SetPricesParams): for each token its provider and the
// report's bytes, which are opaque to us. The three slices have one length.
type SetPrices struct {
	Tokens    []chain.Address
	Providers []chain.Address
	Data      [][]byte
}

func (p SetPrices) check() error {
	if len(p.Providers) != len(p.Tokens) || len(p.Data) != len(p.Tokens) {
		return fmt.Errorf("%d tokens with %d providers and %d reports: want one of each per token", len(p.Tokens),
			len(p.Providers), len(p.Data))
	}
	return nil
}

const pricesType = "(address[],address[],bytes[])"

func selector(signature string) [4]byte {
	hash := chain.Keccak256([]byte(signature))
	return [4]byte(hash[:4])
}

// call encodes a function whose arguments are words followed by the price reports: the words, the offset of the
// reports, the reports.
func call(selector [4]byte, p SetPrices, words ...chain.Hash) []byte {
	out := selector[:]
	for _, w := range words {
		out = append(out, w[:]...)
	}
	out = appendNumber(out, 32*(len(words)+1))
	return append(out, p.encode()...)
}

// encode returns the tuple (address[] tokens, address[] providers, bytes[] data).
func (p SetPrices) encode() []byte {
	tokens, providers, data := encodeAddresses(p.Tokens), encodeAddresses(p.Providers), encodeReports(p.Data)
	out := appendNumber(nil, 3*32)
	out = appendNumber(out, 3*32+len(tokens))
	out = appendNumber(out, 3*32+len(tokens)+len(providers))
	out = append(out, tokens...)
	out = append(out, providers...)
	return append(out, data...)
}

func encodeAddresses(addresses []chain.Address) []byte {
	out := appendNumber(nil, len(addresses))
	for _, a := range addresses {
		word := a.Hash()
		out = append(out, word[:]...)
	}
	return out
}

func encodeReports(reports [][]byte) []byte {
	out := appendNumber(nil, len(reports))
	var tails []byte
	for _, report := range reports {
		out = appendNumber(out, 32*len(reports)+len(tails))
		tails = appendNumber(tails, len(report))
		tails = append(tails, report...)
		tails = append(tails, make([]byte, (32-len(report)%32)%32)...)
	}
	return append(out, tails...)
}

func appendNumber(out []byte, n int) []byte {
	word := wordOf(uint64(n))
	return append(out, word[:]...)
}

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

// ReadCall reads what calldata asks for: the inverse of [Venue.Call], as far as it names the job. It reads the
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

// SimulatedPrices are the prices an execution is rehearsed with (OracleUtils.SimulatePricesParams), one for each token,
// and the earliest and latest second of the reports they stand for.
type SimulatedPrices struct {
	Tokens   []chain.Address
	Prices   []perp.Price
	From, To uint64
}

var selectSimulateOrder = selector("simulateExecuteOrder(bytes32,(address[],(uint256,uint256)[],uint256,uint256))")

// SimulateExecuteOrder encodes OrderHandler.simulateExecuteOrder, which anyone may call for nothing. It executes an
// order and always reverts: with EndOfOracleSimulation where the order is executed, else with what the venue would
// cancel or freeze it for. A simulated executeOrder does not tell: where it cancels or freezes, it succeeds.
func SimulateExecuteOrder(key chain.Hash, p SimulatedPrices) []byte {
	tokens := encodeAddresses(p.Tokens)
	out := append(selectSimulateOrder[:], key[:]...)
	out = appendNumber(out, 2*32)
	out = appendNumber(out, 4*32)
	out = appendNumber(out, 4*32+len(tokens))
	for _, second := range []uint64{p.From, p.To} {
		word := wordOf(second)
		out = append(out, word[:]...)
	}
	out = append(out, tokens...)
	out = appendNumber(out, len(p.Prices))
	for _, price := range p.Prices {
		low, high := price.Min.Bytes32(), price.Max.Bytes32()
		out = append(append(out, low[:]...), high[:]...)
	}
	return out
}
