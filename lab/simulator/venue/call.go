package venue

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Call is what a transaction asks of the exchange.
type Call struct {
	From, To chain.Address
	Data     []byte
	Gas      uint64
}

// jobCall is a decoded call.
type jobCall struct {
	kind    job.Kind
	key     chain.Hash // as in job.Job
	reports []report
}

// report is one report of a call.
type report struct {
	token, provider chain.Address
	price           perp.Price
	timeMs          uint64
}

func (r report) second() uint64 { return r.timeMs / 1000 }

// decode reads a call. A call that is none of ours is not known.
func decode(c Call) (w jobCall, known bool) {
	asked, is := gmx.ReadCall(c.Data)
	if to, served := handlers[asked.Kind]; !is || !served || to != c.To {
		return w, false
	}
	reports := 1 // which word says where they are
	if asked.Kind == job.Liquidation {
		reports = 4
	}
	r := words{c.Data[4:]}
	return jobCall{kind: asked.Kind, key: asked.Key, reports: r.reports(r.number(reports))}, true
}

// handlers are the contracts by what they execute.
var handlers = func() map[job.Kind]chain.Address {
	all := map[job.Kind]chain.Address{}
	for _, kind := range job.Kinds() {
		to, _, err := contracts.Call(job.Job{Kind: kind}, gmx.SetPrices{})
		if err == nil { // deleveraging has no contract here
			all[kind] = to
		}
	}
	return all
}()

// words reads ABI words. What lies outside is zero: calls are made by our own encoder.
type words struct{ data []byte }

func (w words) word(n int) (h chain.Hash) {
	if at := 32 * n; at >= 0 && at+32 <= len(w.data) {
		copy(h[:], w.data[at:])
	}
	return h
}

func (w words) number(n int) int {
	h := w.word(n)
	return int(min(binary.BigEndian.Uint64(h[24:]), uint64(len(w.data))))
}

// from are the words that begin at a byte.
func (w words) from(at int) words { return words{w.data[min(at, len(w.data)):]} }

// reports reads the tuple (address[] tokens, address[] providers, bytes[] data) at a byte.
func (w words) reports(at int) (all []report) {
	tuple := w.from(at)
	tokens, providers, datas := tuple.from(tuple.number(0)), tuple.from(tuple.number(1)), tuple.from(tuple.number(2))
	for n := range tokens.number(0) {
		r := report{token: tokens.word(1 + n).Address(), provider: providers.word(1 + n).Address()}
		data := words{datas.data[min(32, len(datas.data)):]}
		body := data.from(data.number(n) + 32)
		low, high, when := body.word(0), body.word(1), body.word(2)
		r.price = perp.Price{Min: chain.UintFromBytes(low[:]), Max: chain.UintFromBytes(high[:])}
		r.timeMs = binary.BigEndian.Uint64(when[:8])
		all = append(all, r)
	}
	return all
}
