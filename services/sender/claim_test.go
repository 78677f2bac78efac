package sender

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
)

// What is left of a day's money is spent on the most urgent jobs, however many wait: a batch that it does not suffice for sets nothing of it aside.
func TestClaimSpendsWhatIsLeft(t *testing.T) {
	const gas = 100_000
	o := newOffice(t, nil)
	o.road = []stage{{"test", func(_ context.Context, t *task) (verdict, error) {
		t.call = call{gas: gas}
		return verdict{}, nil
	}}}
	o.batch, o.limits.settings = 3, DefaultConfig().Sender
	p := &purse{limit: 2 * gas * txm.DefaultPolicy().Floor, store: o.db.Intents(), signer: o.signer}
	o.count, o.launch = p.count, func(context.Context, []*task) error { return nil }
	o.claim = claim{
		tenure: o.tenure, key: devKey(t), chainID: 56, limits: o.limits, market: &market{known: &txm.Market{}, horizon: horizonAt(0, time.Now()), at: 100}, purse: p,
		store: o.db.Intents(), cursor: &cursor{known: &nonce.Cursor{}}, expect: func(chain.Hash) {}, metrics: o.metrics, log: zerolog.Nop(), patience: time.Minute,
	}.run
	for i := range byte(3) {
		j := orderAt(i, uint64(i))
		j.Signer = o.signer
		if _, err := o.db.Intents().Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	flights, err := o.db.Intents().InFlight(t.Context(), o.signer)
	if err != nil {
		t.Fatal(err)
	}
	var claimed []uint64
	for _, f := range flights {
		claimed = append(claimed, f.Intent.Job.BirthMs)
	}
	if !slices.Equal(claimed, []uint64{0, 1}) || !strings.Contains(o.gates[len(o.gates)-1], "spent what it may") {
		t.Errorf("claimed those born at %v, the gate says %q", claimed, o.gates)
	}
	if got := o.outcomes(t); len(got) > 0 {
		t.Errorf("ended: %v", got)
	}
}

// devKey is a key of no account in particular.
func devKey(t *testing.T) signer.Signer {
	t.Helper()
	cfg := signer.DefaultConfig()
	cfg.Dev, cfg.DevKeys = true, []secret.String{secret.New(strings.Repeat("11", 32))}
	keys, err := signer.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}
