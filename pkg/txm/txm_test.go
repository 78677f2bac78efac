package txm

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

func TestEveryStateSaysWhatItDoesNotMean(t *testing.T) {
	if len(rules) != len(States()) {
		t.Fatalf("%d rules for %d states", len(rules), len(States()))
	}
	for _, s := range States() {
		if s.Not() == "" {
			t.Errorf("%s does not say what it must not be taken for", s)
		}
	}
}

func TestTransitions(t *testing.T) {
	reach := map[State]bool{Queued: true}
	for range States() {
		for _, s := range States() {
			for _, next := range rules[s].next {
				reach[next] = reach[next] || reach[s]
			}
		}
	}
	for _, s := range States() {
		if !reach[s] {
			t.Errorf("%s cannot be reached", s)
		}
		if s.Terminal() != (len(rules[s].next) == 0) {
			t.Errorf("%s: terminal %v, but leads to %v", s, s.Terminal(), rules[s].next)
		}
		for _, next := range rules[s].next {
			if s.InFlight() && next == Queued || s != Queued && next == Skipped {
				t.Errorf("%s to %s gives a nonce back", s, next)
			}
		}
		for _, before := range s.From() {
			if !before.To(s) {
				t.Errorf("%s does not lead to %s", before, s)
			}
		}
	}
	// NON-13: what is final was seen in a block first.
	for _, s := range []State{FinalOK, FinalReverted, FinalLostRace} {
		if !slices.Equal(s.From(), []State{Mined}) {
			t.Errorf("%s is reached from %v", s, s.From())
		}
	}
}

func TestFinal(t *testing.T) {
	for o, want := range map[job.Outcome]State{
		job.Done: FinalOK, job.CancelledByVenue: FinalOK, job.FrozenByVenue: FinalOK, job.LostRace: FinalLostRace, job.Reverted: FinalReverted,
	} {
		if got := Final(o); got != want {
			t.Errorf("%s: %s, want %s", o, got, want)
		}
	}
}

// LIQ-10, TIER-12.
func TestCoolDown(t *testing.T) {
	const settled = 10 * time.Second
	for _, c := range []struct {
		o    job.Outcome
		arm  uint32
		want time.Duration
	}{
		{job.Reverted, 1, 2 * time.Second}, {job.Refused, 2, 4 * time.Second}, {job.Expired, 3, 8 * time.Second},
		{job.Reverted, 9, lastRetry}, {job.Reverted, 1 << 31, lastRetry}, {Usurped, 1, 2 * time.Second},
		{job.Done, 1, settled}, {job.LostRace, 4, settled}, {job.SkippedDone, 1, settled}, {job.CancelledByVenue, 1, settled},
		{job.DroppedRecovered, 7, 0},
	} {
		if got := CoolDown(c.o, c.arm, settled); got != c.want {
			t.Errorf("%s, arm %d: %s, want %s", c.o, c.arm, got, c.want)
		}
	}
}

func TestPrice(t *testing.T) {
	p := DefaultPolicy()
	for suggested, want := range map[uint64]uint64{0: Gwei / 20, Gwei / 100: Gwei / 20, Gwei: Gwei, 90 * Gwei: 5 * Gwei} {
		if got := p.Price(suggested); got != want {
			t.Errorf("suggested %d: %d, want %d", suggested, got, want)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	if err := DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Policy){
		"no floor":         func(p *Policy) { p.Floor = 0 },
		"cap below floor":  func(p *Policy) { p.Cap = p.Floor - 1 },
		"no resend":        func(p *Policy) { p.Resend = 0 },
		"doubts for never": func(p *Policy) { p.Doubt = -1 },
	} {
		p := DefaultPolicy()
		spoil(&p)
		if p.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func receiptAt(block uint64, fork byte) *Receipt {
	return &Receipt{TxHash: chain.Hash{1}, Block: chain.BlockRef{Number: block, Hash: chain.Hash{byte(block), fork}}}
}

func TestNext(t *testing.T) {
	p := DefaultPolicy()
	for name, c := range map[string]struct {
		mined *Receipt
		sight Sight
		want  Step
	}{
		"just sent":                       {nil, Sight{Head: 9}, Wait},
		"not mined for two blocks":        {nil, Sight{Head: 9, SinceSend: p.Resend}, Broadcast},
		"adopted, never sent by us":       {nil, Sight{Head: 9, SinceSend: time.Hour}, Broadcast},
		"mined":                           {nil, Sight{Head: 9, Receipt: receiptAt(9, 0), SinceSend: time.Hour}, Record},
		"mined in a final block":          {nil, Sight{Head: 9, Final: 9, Receipt: receiptAt(9, 0)}, Record},
		"mined, known, not final":         {receiptAt(9, 0), Sight{Head: 9, Final: 8, Receipt: receiptAt(9, 0)}, Wait},
		"mined, known, final":             {receiptAt(9, 0), Sight{Head: 9, Final: 9, Receipt: receiptAt(9, 0)}, Finish},
		"mined again on another branch":   {receiptAt(9, 0), Sight{Head: 9, Final: 9, Receipt: receiptAt(9, 1)}, Record},
		"reorganised away":                {receiptAt(9, 0), Sight{Head: 9, SinceSend: time.Hour}, TakeBack},
		"asked a node that lags":          {receiptAt(9, 0), Sight{Head: 8, SinceSend: time.Hour}, Wait},
		"nonce spent, receipt late":       {nil, Sight{Head: 9, Final: 9, FinalNonce: 6, SinceSend: time.Hour}, Wait},
		"nonce spent, no receipt of ours": {nil, Sight{Head: 9, Final: 9, FinalNonce: 6, Missing: p.Doubt, SinceSend: time.Hour}, Disown},
		"an earlier nonce was spent":      {nil, Sight{Head: 9, Final: 9, FinalNonce: 5, SinceSend: time.Hour, Missing: p.Doubt}, Broadcast},
	} {
		f := Flight{Intent: Intent{Nonce: 5, State: Sent}, Mined: c.mined}
		if got := p.Next(f, c.sight); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Whatever the chain shows, an intent ends only on a final block, and a nonce with a receipt is never disowned.
func TestNextNeverEndsEarly(t *testing.T) {
	p := DefaultPolicy()
	maybe := func(t *rapid.T, label string) *Receipt {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		return receiptAt(rapid.Uint64Range(1, 6).Draw(t, label+" block"), rapid.Byte().Draw(t, label+" fork")%2)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := Flight{Intent: Intent{Nonce: rapid.Uint64Range(0, 3).Draw(t, "nonce")}, Mined: maybe(t, "mined")}
		s := Sight{
			Receipt: maybe(t, "receipt"), Head: rapid.Uint64Range(1, 6).Draw(t, "head"), Final: rapid.Uint64Range(0, 6).Draw(t, "final"),
			FinalNonce: rapid.Uint64Range(0, 4).Draw(t, "final nonce"), SinceSend: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "since")),
			Missing: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "missing")),
		}
		switch p.Next(f, s) {
		case Finish:
			if f.Mined == nil || s.Receipt == nil || !f.Mined.Same(*s.Receipt) || s.Receipt.Block.Number > s.Final {
				t.Fatal("finished without a stored receipt in a final block")
			}
		case Disown:
			if s.Receipt != nil || f.Mined != nil || s.FinalNonce <= f.Intent.Nonce || s.Missing < p.Doubt {
				t.Fatal("disowned in spite of doubt")
			}
		case Broadcast:
			if s.Receipt != nil || s.FinalNonce > f.Intent.Nonce {
				t.Fatal("broadcast what cannot be mined any more")
			}
		}
	})
}
