package txmanager

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

// LIQ-17: the oldest transaction that has not landed is seen while it is in flight, by lane, and grows older while
// nobody can look. What is mined, and what is another tier's now, does not count.
func TestOldestUnlanded(t *testing.T) {
	reg, now := prometheus.NewPedanticRegistry(), time.Now()
	metrics := NewMetrics(reg)
	metrics.unlanded.clock = func() time.Time { return now }
	signer := chain.Address{1}
	on := duty{signer: signer, turns: passedOn{"elsewhere"}, heads: headtrack.New(time.Now), metrics: metrics}
	c := &confirm{
		view: view{on, &broadcast{duty: on, last: map[chain.Hash]sent{}}}, ages: newAges(time.Now, time.Minute),
	}
	pending := func(id string, kind job.Kind, age time.Duration) txm.PendingTx {
		f := txm.PendingTx{Txs: []txm.Tx{{Kind: txm.Exec}}, Age: age}
		f.Intent.Job = job.Job{ID: id, Kind: kind}
		return f
	}
	mined := pending("mined", job.Liquidation, time.Hour)
	mined.Mined = &txm.Receipt{}
	c.remember([]txm.PendingTx{mined, pending("elsewhere", job.Liquidation, time.Hour),
		pending("one", job.Liquidation, 3*time.Second), pending("two", job.Liquidation, 2*time.Second),
		pending("three", job.Order, time.Second)})
	now = now.Add(15 * time.Second)
	shown := func() map[string]float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		ages := map[string]float64{}
		for _, f := range families {
			if f.GetName() == "sender_oldest_unlanded_seconds" {
				for _, m := range f.GetMetric() {
					ages[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		return ages
	}
	if got := shown(); got["liquidation"] != 18 || got["order"] != 16 || got["maintenance"] != 0 ||
		len(got) != len(job.Lanes()) {
		t.Errorf("15 s after a look that found 3 s and 1 s: %v", got)
	}
	if c.remember(nil); shown()["liquidation"] != 0 {
		t.Error("nothing is in flight")
	}
	if metrics.forget(signer); len(shown()) != 0 {
		t.Error("a signer that is no longer worked here is shown")
	}
}

// passedOn has every turn but that of one job.
type passedOn struct{ id string }

func (p passedOn) Ask(j job.Job) Turn      { return Turn{Mine: j.ID != p.id, Passed: j.ID == p.id} }
func (passedOn) Taken(job.Job)             {}
func (passedOn) Ended(string, job.Outcome) {}
