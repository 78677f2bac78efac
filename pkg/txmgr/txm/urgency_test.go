package txm

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/job"
)

var someKinds = []job.Kind{job.Liquidation, job.Adl, job.Order, job.Deposit, Filler}

// What may pay the market is offered what nodes ask for; what may not is offered less, and would not be mined.
func TestWhoPaysIsOfferedEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		lane := rapid.SampledFrom(job.Lanes()).Draw(t, "lane")
		gas := rapid.Uint64Range(EmptyGas, MaxGas).Draw(t, "gas")
		m := Market{Suggested: rapid.Uint64Range(0, 20*Gwei).Draw(t, "suggested"),
			Paid: map[job.Lane][]uint64{lane: rapid.SliceOfN(rapid.Uint64Range(0, 20*Gwei), 0, 5).Draw(t, "paid")}}
		if pays, offered := p.Pays(lane, gas, m), p.First(lane, gas, m); pays != (offered >= m.Suggested) {
			t.Fatalf("%s pays: %t, offered %d where nodes ask for %d", lane, pays, offered, m.Suggested)
		}
	})
}

// What is raised for a more urgent lane pays the market in one step, wherever that lane may.
func TestInheritedRaiseReachesTheMarket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		own, heir := rapid.SampledFrom(job.Lanes()).Draw(t, "own"), rapid.SampledFrom(job.Lanes()).Draw(t, "inherited")
		gas := rapid.Uint64Range(EmptyGas, MaxGas).Draw(t, "gas")
		calm := Market{Suggested: rapid.Uint64Range(0, 2*Gwei).Draw(t, "calm")}
		dear := Market{Suggested: rapid.Uint64Range(0, 20*Gwei).Draw(t, "dear")}
		first := p.First(own, gas, calm)
		price, room := p.Raise(heir, Exec, gas, SignedTx{Gas: gas, Tip: first, Cap: first}, dear)
		if room && price > p.ceiling(heir, Exec, gas) {
			t.Fatalf("raised to %d, the cap of %s is %d", price, heir, p.ceiling(heir, Exec, gas))
		}
		if room && p.Pays(heir, gas, dear) && price < dear.Suggested {
			t.Fatalf("raised to %d for %s, nodes ask for %d", price, heir, dear.Suggested)
		}
	})
}

// A pending transaction inherits the most urgent lane of what stands behind it, and nothing less urgent than its own.
func TestInherit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "pending transactions")
		inFlight, presses := make([]PendingTx, n), make([]bool, n)
		for i := range inFlight {
			f := &inFlight[i]
			f.Intent.Nonce, f.Intent.Job.Kind = uint64(i), rapid.SampledFrom(someKinds).Draw(t, "kind")
			f.Txs = []Tx{{Kind: rapid.SampledFrom([]TxKind{Exec, Exec, Cancel}).Draw(t, "attempt")}}
			if rapid.Bool().Draw(t, "mined") {
				f.Mined = &Receipt{}
			}
			presses[i] = rapid.Bool().Draw(t, "ours")
		}
		waiting := rapid.SampledFrom(append(job.Lanes(), "")).Draw(t, "waiting")
		got := Inherit(inFlight, waiting, func(f PendingTx) bool { return presses[f.Intent.Nonce] })
		for i, f := range inFlight {
			want := f.Intent.Job.Kind.Lane()
			if waiting != "" && Above(waiting, want) {
				want = waiting
			}
			for k := i + 1; k < n; k++ {
				behind := inFlight[k]
				if lane := behind.Intent.Job.Kind.Lane(); behind.Mined == nil && !behind.Leaving() && presses[k] &&
					Above(lane, want) {
					want = lane
				}
			}
			if got[i] != want {
				t.Fatalf("pending transaction %d of %v, waiting %q: %s, want %s", i, inFlight, waiting, got[i], want)
			}
		}
	})
}

// What stands before something more urgent is pressed with the patience of that.
func TestInheritedPatience(t *testing.T) {
	p := DefaultPolicy()
	deposit := PendingTx{Intent: Intent{Job: job.Job{Kind: job.Deposit}}, Txs: []Tx{{Kind: Exec}}}
	s := Observation{Head: 12, Sent: Sending{Ever: true, First: 10, Last: 11, Answer: Pooled}}
	if got := p.Next(deposit, s); got != Wait || s.CancelsForUrgent(deposit) {
		t.Errorf("with nothing behind it: %s, cancels for it: %t", got, s.CancelsForUrgent(deposit))
	}
	s.Lane, s.Head = job.OrderLane, 10+p.Order.Patience
	if got := p.Next(deposit, s); got != Replace {
		t.Errorf("before an order: %s", got)
	}
	s.Lane = job.LiquidationLane
	s.Head = 11 // one block, where a liquidation of its own waits for two
	if got := p.Next(deposit, s); got != Replace || !s.CancelsForUrgent(deposit) {
		t.Errorf("before a liquidation: %s, cancels for it: %t", got, s.CancelsForUrgent(deposit))
	}
	deposit.Txs[0].Kind = Cancel
	if s.CancelsForUrgent(deposit) {
		t.Error("what was cancelled for it is so again")
	}
}
