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

// wish is a decoded call.
type wish struct {
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

// function is how one kind of job is called: on which contract, and with how many words before the reports.
type function struct {
	kind  job.Kind
	to    chain.Address
	words int
}

// functions by their selectors, which are read off what pkg/gmx encodes.
var functions = func() map[[4]byte]function {
	all := map[[4]byte]function{}
	at := Contracts()
	for _, kind := range job.Kinds() {
		to, data, err := at.Call(job.Job{Kind: kind}, gmx.SetPrices{})
		if err != nil {
			continue // deleveraging has no contract here
		}
		words := 1
		if kind == job.Liquidation {
			words = 4
		}
		all[[4]byte(data)] = function{kind, to, words}
	}
	return all
}()

// decode reads a call. A call that is none of ours is not known.
func decode(c Call) (w wish, known bool) {
	if len(c.Data) < 4 {
		return w, false
	}
	f, known := functions[[4]byte(c.Data)]
	if !known || f.to != c.To {
		return w, false
	}
	r := words{c.Data[4:]}
	w.kind, w.key = f.kind, r.word(0)
	if f.kind == job.Liquidation {
		w.key = perp.PositionKey(r.word(0).Address(), r.word(1).Address(), r.word(2).Address(), r.word(3) == perp.BoolWord(true))
	}
	w.reports = r.reports(r.number(f.words))
	return w, true
}

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
		r.price = perp.Price{Min: perp.UintFromBytes(low[:]), Max: perp.UintFromBytes(high[:])}
		r.timeMs = binary.BigEndian.Uint64(when[:8])
		all = append(all, r)
	}
	return all
}
