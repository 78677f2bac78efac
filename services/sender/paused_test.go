package sender

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/txstore"
)

// ward lists signers as it is told to.
type ward struct {
	signers []txstore.SignerStatus
	err     error
}

func (w *ward) List(context.Context) ([]txstore.SignerStatus, error) { return w.signers, w.err }

// A pause is seen whoever made it, and a database that is away changes nothing.
func TestPausesAreSeen(t *testing.T) {
	own, foreign := chain.Address{1}, chain.Address{2}
	w, m := &ward{}, NewMetrics(prometheus.NewRegistry())
	p := &pauses{signers: w, own: []chain.Address{own}, notice: func(string, string) {}, metrics: m,
		log: zerolog.Nop()}
	for i, step := range []struct {
		reason string
		err    error
		want   float64
	}{{"", nil, 0}, {"key is being moved", nil, 1}, {"", errors.New("away"), 1}, {"", nil, 0}} {
		w.signers, w.err = []txstore.SignerStatus{{Signer: own, Paused: step.reason},
			{Signer: foreign, Paused: "another's"}}, step.err
		if err := p.look(t.Context()); !errors.Is(err, step.err) {
			t.Errorf("step %d: %v", i, err)
		}
		if got := testutil.ToFloat64(m.paused.WithLabelValues(own.Hex())); got != step.want {
			t.Errorf("step %d: the gauge says %v", i, got)
		}
	}
	if n := testutil.CollectAndCount(m.paused); n != 1 {
		t.Errorf("%d signers are reported", n)
	}
}

// NON-15: of a signer whose key nobody has, with something to do, every sender tells; of one without, nobody.
func TestNobodysQueueIsTold(t *testing.T) {
	own, lost := chain.Address{1}, chain.Address{2}
	w, m, told := &ward{}, NewMetrics(prometheus.NewRegistry()), notices{}
	p := &pauses{signers: w, own: []chain.Address{own}, notice: told.set, metrics: m, log: zerolog.Nop()}
	for i, step := range []struct {
		lost txstore.SignerStatus
		told bool
	}{{txstore.SignerStatus{Unheld: true}, false}, {txstore.SignerStatus{Unheld: true, InFlight: 1}, true},
		{txstore.SignerStatus{InFlight: 1}, false}, {txstore.SignerStatus{Unheld: true, Queued: 1}, true},
		{txstore.SignerStatus{Unable: "another's to tell", Queued: 1}, false}} {
		step.lost.Signer = lost
		w.signers = []txstore.SignerStatus{{Signer: own, Queued: 1}, step.lost}
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err, n := told.healthy(t.Context()), testutil.CollectAndCount(m.paused); (err != nil) != step.told ||
			(n == 2) != step.told {
			t.Errorf("step %d: told %v, by %d gauges", i, err, n)
		}
	}
}
