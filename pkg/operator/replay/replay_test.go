package replay

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// encoded are the records of messages, each under an epoch.
func encoded(t *testing.T, epoch uint64, messages ...wire.Message) (records []bus.Record) {
	t.Helper()
	for _, m := range messages {
		r, err := wire.Encode([]byte("key"), m, epoch, 0)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func ref(n uint64) chain.BlockRef {
	return chain.BlockRef{Number: n, Hash: chain.Hash{byte(n)}, TimeMs: n * 1000}
}

func word(n uint64, value byte) wire.Message {
	return wire.Param{Block: ref(n), Key: chain.Hash{1}, Value: chain.Hash{value}}
}

func end(n uint64) wire.Message { return wire.BlockEnd{Block: ref(n), Records: 1} }

func ended(n uint64, value byte) []wire.Message { return []wire.Message{word(n, value), end(n)} }

func back(to, from uint64) chain.Reorg {
	return chain.Reorg{Ancestor: ref(to), OldTip: ref(from)}
}

// What a partition is at its end: blocks that were taken back, said twice, or written by a scanner that had been
// replaced, or had not claimed it, are not in it.
func TestPastIsWhatStands(t *testing.T) {
	at := func(epoch uint64, messages ...wire.Message) []bus.Record { return encoded(t, epoch, messages...) }
	for name, c := range map[string]struct {
		records [][]bus.Record
		want    []byte // values of the word, block by block from 10 on
	}{
		"one after the other": {[][]bus.Record{at(1, ended(10, 1)...), at(1, ended(11, 2)...)}, []byte{1, 2}},
		"a reorg": {[][]bus.Record{at(1, ended(10, 1)...), at(1, ended(11, 2)...),
			at(1, wire.Reorg{Reorg: back(10, 11)}), at(1, ended(11, 3)...)}, []byte{1, 3}},
		"said twice": {[][]bus.Record{at(1, ended(10, 1)...), at(2, wire.Epoch{Number: 2}),
			at(2, ended(10, 1)...)}, []byte{1}},
		"a replaced scanner": {[][]bus.Record{at(2, wire.Epoch{Number: 2}), at(2, ended(10, 1)...),
			at(1, ended(11, 9)...)}, []byte{1}},
		"a scanner without a claim": {[][]bus.Record{at(1, ended(10, 1)...), at(2, ended(11, 9)...),
			at(1, ended(11, 2)...)}, []byte{1, 2}},
		"its part of a block is left": {[][]bus.Record{at(1, word(10, 9)), at(2, wire.Epoch{Number: 2}),
			at(2, ended(10, 1)...)}, []byte{1}},
		"later blocks are not kept": {[][]bus.Record{at(1, ended(10, 1)...), at(1, ended(99, 2)...)}, []byte{1}},
		"history in a range": {[][]bus.Record{at(1, word(10, 1), word(12, 3),
			wire.RangeEnd{Before: ref(9), Last: ref(20),
				Blocks: []chain.BlockRef{ref(10), ref(12)}, Records: 2})}, []byte{1, 3}},
	} {
		p := &partition{claim: 1}
		for _, r := range slices.Concat(c.records...) {
			if err := p.take(r, 50); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		past := &Past{parts: []*partition{p}}
		s := past.state(nil)
		var got []byte
		for _, b := range p.blocks {
			if at, known, err := s.advance(b.ref.Number); err != nil || !known || at.Hash != b.ref.Hash {
				t.Fatalf("%s: %v %v %v", name, at, known, err)
			}
			row := s.Get(perp.RowKey{Table: perp.Parameters, Key: chain.Hash{1}})
			got = append(got, row.(perp.Parameter).Value[0])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The evidence of a job says between which reports of the topic its planner stood.
func TestReadings(t *testing.T) {
	a, b := chain.Address{0xa}, chain.Address{0xb}
	report := func(token chain.Address, ms uint64) price.Report {
		return price.Report{Token: token, Min: chain.U64(ms), Max: chain.U64(ms), TimeMs: ms}
	}
	r := newReports()
	for _, one := range []price.Report{report(a, 1000), report(b, 1000), report(b, 900), report(b, 2000),
		report(b, 3000),
		report(a, 3000)} {
		r.Add(one) // the third is older than what is known, and nobody judges with it
	}
	at := func(ids ...string) job.Job { return job.Job{Evidence: job.Evidence{Reports: ids}} }
	for name, c := range map[string]struct {
		job  job.Job
		want []int
	}{
		"one token":             {at(report(a, 1000).ID()), []int{1, 2, 3, 4}},
		"both, in between":      {at(report(a, 1000).ID(), report(b, 2000).ID()), []int{3}},
		"the newest":            {at(report(a, 3000).ID(), report(b, 3000).ID()), []int{5}},
		"one that is not there": {at(report(a, 7000).ID()), nil},
		"two that never met":    {at(report(a, 3000).ID(), report(b, 2000).ID()), nil},
	} {
		if got := r.readings(c.job); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if q, known := r.newest(3)(b); !known || q.TimeMs != 2000 || q.ID != report(b, 2000).ID() {
		t.Errorf("%+v, %v", q, known)
	}
	if _, known := r.newest(1)(b); known {
		t.Error("a report that had not come yet is known")
	}
	if n := r.until(2500); n != 3 {
		t.Errorf("%d reports until 2.5 s", n)
	}
}

// waiting is a decoder that finds a deposit in every transaction.
type waiting struct{ perp.Request }

// Transaction implements execution.Decoder.
func (w waiting) Transaction([]chain.Log, uint64) ([]perp.Event, error) {
	return []perp.Event{perp.RequestCreated{Request: w.Request}}, nil
}

// What is decided otherwise today is shown with the sentence of today; what cannot be decided again is no difference.
func TestRepeat(t *testing.T) {
	deposit := perp.Request{Key: chain.Hash{7}, Kind: perp.Deposit, Market: chain.Address{5}, Status: perp.Created}
	p := &partition{claim: 1}
	made := wire.Log{Log: chain.Log{Block: 10, BlockHash: ref(10).Hash, TxHash: chain.Hash{3}}}
	for _, r := range encoded(t, 1, made, end(10), end(11)) {
		if err := p.take(r, 50); err != nil {
			t.Fatal(err)
		}
	}
	published := func(n uint64, reason string, reports ...string) PublishedJob {
		id := job.RequestID(job.Deposit, deposit.Key)
		return PublishedJob{Job: job.Job{ID: id, Kind: job.Deposit, Key: deposit.Key,
			Evidence: job.Evidence{Block: ref(n), Reason: reason, Reports: reports}}}
	}
	other := published(11, "request waits")
	other.Job.Evidence.Block.Hash = chain.Hash{0xff}
	all, err := Repeat(&Past{parts: []*partition{p}}, waiting{deposit}, newReports(), due.Rules{},
		[]PublishedJob{published(10, "request waits"), published(11, "request waits", "a report"), other,
			published(12, "request waits")})
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	if all[0].Same || all[0].Missing != "" || !strings.Contains(all[0].Now, "not due: market") {
		t.Errorf("its market is not in the state: %+v", all[0])
	}
	for i, want := range []string{"", "price topic", "a branch that the chain has left", "does not have that block"} {
		if i > 0 && (all[i].Same || !strings.Contains(all[i].Missing, want)) {
			t.Errorf("%d: %+v, want %s", i, all[i], want)
		}
	}
}

// traded is a decoder that finds a market and an order in every transaction.
type traded struct{}

var eth, usdc = chain.Address{0xe7}, chain.Address{0xcc}

// Transaction implements execution.Decoder.
func (traded) Transaction([]chain.Log, uint64) ([]perp.Event, error) {
	stamp := perp.Stamp{Block: 10, TimeMs: 10_000}
	return []perp.Event{
		perp.MarketListed{Market: perp.Market{MarketToken: chain.Address{5}, IndexToken: eth, LongToken: eth,
			ShortToken: usdc, Stamp: stamp}},
		perp.RequestCreated{Request: perp.Request{Key: chain.Hash{7}, Kind: perp.Deposit, Market: chain.Address{5},
			Status: perp.Created, Birth: stamp, Stamp: stamp, Fields: perp.Fields{"n": chain.U64(7)}}},
		perp.OrderCreated{Order: perp.Order{Key: chain.Hash{8}, Market: chain.Address{5},
			OrderType:              perp.MarketIncrease,
			InitialCollateralToken: usdc, IsLong: true, Status: perp.Created, SizeDeltaUsd: chain.U64(1), Birth: stamp,
			Stamp: stamp}},
	}, nil
}

// PIPE-9: what a decision was made from can be carried elsewhere as JSON, and gives the same decision there, with no
// topic; what is altered on the way does not.
func TestCase(t *testing.T) {
	p := &partition{claim: 1}
	made := wire.Log{Log: chain.Log{Block: 10, BlockHash: ref(10).Hash, TxHash: chain.Hash{3}}}
	for _, r := range encoded(t, 1, word(10, 3), made, end(10), end(11)) {
		if err := p.take(r, 50); err != nil {
			t.Fatal(err)
		}
	}
	reports := newReports()
	for ms := uint64(9000); ms <= 12_000; ms += 500 {
		for _, token := range []chain.Address{eth, usdc} {
			reports.Add(price.Report{Token: token, Min: chain.U64(ms), Max: chain.U64(ms + 1), TimeMs: ms,
				Data: []byte{1}})
		}
	}
	past, rules := &Past{parts: []*partition{p}}, due.Rules{FireRatio: perp.One}
	s := past.state(traded{})
	at, _, err := s.advance(11)
	if err != nil {
		t.Fatal(err)
	}
	m := s.moment(at, 4, rules, reports.newest(reports.until(11_000)))
	var published []PublishedJob
	for _, about := range []job.Job{{Kind: job.Deposit, Key: chain.Hash{7}}, {Kind: job.Order, Key: chain.Hash{8}}} {
		d := s.decide(m, about)
		if !d.Due {
			t.Fatalf("%s: %s", about.Kind, d.Why)
		}
		published = append(published, PublishedJob{d.Job, "jobs 0/1"})
	}
	lost := published[0]
	lost.Job.Evidence.Reports = []string{"gone"}
	cases, err := Gather(past, traded{}, reports, rules, append(published, lost))
	if err != nil || len(cases) != 3 {
		t.Fatal(cases, err)
	}
	text, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	var carried []Case
	if err := json.Unmarshal(text, &carried); err != nil {
		t.Fatal(err)
	}
	for i, c := range carried {
		again, err := c.Again()
		if err != nil || again.Same != (i < 2) || (again.Missing != "") != (i == 2) {
			t.Errorf("%d: %+v, %v", i, again, err)
		}
	}
	carried[1].Rows = carried[1].Rows[:1]
	if again, err := carried[1].Again(); err != nil || again.Same {
		t.Errorf("without rows: %+v, %v", again, err)
	}
}
