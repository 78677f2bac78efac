package txm

import (
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/job"
)

// TIER-9: in another keeper's window nothing is pressed that could execute the job; what only frees the nonce is, and
// what the chain holds comes first.
func TestNextOfAnothersWindow(t *testing.T) {
	p := DefaultPolicy()
	order := PendingTx{Intent: Intent{Nonce: 5, State: Sent, Job: job.Job{Kind: job.Order}},
		Txs: []Tx{{Kind: Exec}}}
	leaving := order
	leaving.Txs = []Tx{{Kind: Exec}, {Kind: Cancel}}
	calledOff := order
	calledOff.Intent.CalledOff = "ops: stuck"
	mined := order
	mined.Mined = receiptAt(9, 0)
	just, long := Sending{Ever: true, First: 9, Last: 9}, Sending{Ever: true, First: 1, Last: 1, Answer: Pooled}
	for name, c := range map[string]struct {
		pending  PendingTx
		observed Observation
		want     Step
	}{
		"just sent":          {order, Observation{Head: 9, Sent: just}, Yield},
		"not mined for long": {order, Observation{Head: 9, Sent: long}, Yield},
		"too cheap": {order,
			Observation{Head: 9, Sent: Sending{Ever: true, First: 9, Last: 9, Answer: TooCheap}}, Yield},
		"left by another lease term": {order, Observation{Head: 9}, Yield},
		"in the way":                 {order, Observation{Head: 9, Sent: long, InTheWay: true}, Yield},
		"taken by nobody, ever": {order,
			Observation{Head: 9, Sent: Sending{Ever: true, First: 1, Last: 1, Answer: Never}}, CancelNonce},
		"called off":                        {calledOff, Observation{Head: 9, Sent: just}, CancelNonce},
		"being freed":                       {leaving, Observation{Head: 9, Sent: long}, Replace},
		"being freed, another's lease term": {leaving, Observation{Head: 9}, Resume},
		"mined":                             {order, Observation{Head: 9, Sent: long, Receipt: receiptAt(9, 0)}, Record},
		"final":                             {mined, Observation{Head: 9, Final: 9, Receipt: receiptAt(9, 0)}, Finish},
		"reorganised away":                  {mined, Observation{Head: 9, Sent: long}, Unmine},
	} {
		c.observed.Over = true
		if got := p.Next(c.pending, c.observed); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Whatever a pending transaction looks like, while its job is another's it is neither adopted nor raised nor broadcast,
// unless it only frees its number; and whose turn it is changes nothing else.
func TestNextYieldsAndNothingElse(t *testing.T) {
	p := DefaultPolicy()
	rapid.Check(t, func(t *rapid.T) {
		f := PendingTx{Intent: Intent{Nonce: 2, Job: job.Job{Kind: rapid.SampledFrom(job.Kinds()).Draw(t, "kind")}},
			Txs: []Tx{{Kind: Exec}}}
		if rapid.Bool().Draw(t, "leaving") {
			f.Txs = append(f.Txs, Tx{Kind: rapid.SampledFrom([]TxKind{Cancel, Fill}).
				Draw(t, "freed by")})
		}
		if rapid.Bool().Draw(t, "mined") {
			f.Mined = receiptAt(rapid.Uint64Range(1, 40).Draw(t, "block"), 0)
		}
		s := Observation{
			Head: rapid.Uint64Range(1, 40).Draw(t, "head"), Final: rapid.Uint64Range(0, 40).Draw(t, "final"),
			FinalNonce: rapid.Uint64Range(0, 4).Draw(t, "final nonce"), InTheWay: rapid.Bool().Draw(t, "in the way"),
			Sent: Sending{
				Ever: rapid.Bool().Draw(t, "ever"), First: rapid.Uint64Range(0, 40).Draw(t, "first"),
				Last:   rapid.Uint64Range(0, 40).Draw(t, "last"),
				Answer: Answer(rapid.IntRange(0, 3).Draw(t, "answer")),
			},
		}
		if rapid.Bool().Draw(t, "receipt") {
			s.Receipt = receiptAt(rapid.Uint64Range(1, 40).Draw(t, "receipt block"), 0)
		}
		ours := p.Next(f, s)
		s.Over = true
		others := p.Next(f, s)
		pressing := ours == Resume || ours == Broadcast || ours == Replace
		switch {
		case ours == Yield:
			t.Fatal("yields its own job")
		case f.Leaving() && others != ours:
			t.Fatalf("what frees a number: %s, and %s in another's window", ours, others)
		case others == Resume || others == Broadcast || others == Replace:
			if !f.Leaving() {
				t.Fatalf("%s in another's window", others)
			}
		case others != ours && others != Yield, others == Yield && !pressing && ours != Wait:
			t.Fatalf("%s, and %s in another's window", ours, others)
		}
	})
}
