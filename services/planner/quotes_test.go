package planner

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/price"
)

// A record of the price topic that nobody can read is reported and passed over; what stands behind it is judged with.
func TestUnreadablePricesArePassedOver(t *testing.T) {
	var rejected []int64
	q := newQuotes(func(r bus.Record, why error) {
		if why == nil {
			t.Errorf("offset %d was rejected without a reason", r.Offset)
		}
		rejected = append(rejected, r.Offset)
	})
	record := func(m wire.Message) bus.Record {
		r, err := wire.Encode(nil, m, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	good := price.Report{Token: chain.Address{1}, Min: chain.U64(1), Max: chain.U64(1), TimeMs: 1_700_000_000_000}
	free := good
	free.Min = chain.Uint{}
	later := record(good.Message())
	later.Headers[1].Value = []byte{9, 9} // of a schema this build does not know
	records := []bus.Record{{Value: []byte("garbage")}, record(wire.Job{Job: job.Job{ID: "no price"}}),
		record(free.Message()), later, record(good.Message())}
	for i := range records {
		records[i].Offset = int64(i)
	}
	q.read(records, time.Now())
	if len(rejected) != 4 {
		t.Errorf("offsets %v were rejected", rejected)
	}
	if r, known := q.board.Latest(good.Token); !known || r.Min != good.Min || !q.tokens[good.Token] {
		t.Error("the report behind them was not taken in")
	}
}
