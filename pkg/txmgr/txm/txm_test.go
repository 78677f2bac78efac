package txm

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

func TestTransitions(t *testing.T) {
	reach := map[State]bool{Queued: true}
	for range States() {
		for _, s := range States() {
			for _, next := range transitions[s] {
				reach[next] = reach[next] || reach[s]
			}
		}
	}
	for _, s := range States() {
		if !reach[s] {
			t.Errorf("%s cannot be reached", s)
		}
		if s.Terminal() != (len(transitions[s]) == 0) {
			t.Errorf("%s: terminal %v, but leads to %v", s, s.Terminal(), transitions[s])
		}
		for _, next := range transitions[s] {
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
	for _, s := range []State{FinalOK, FinalReverted, FinalLostRace, Cancelled} {
		if !slices.Equal(s.From(), []State{Mined}) {
			t.Errorf("%s is reached from %v", s, s.From())
		}
	}
}

func TestFinal(t *testing.T) {
	for o, want := range map[job.Outcome]State{
		job.Done: FinalOK, job.CancelledByVenue: FinalOK, job.FrozenByVenue: FinalOK, job.LostRace: FinalLostRace,
		job.Reverted:    FinalReverted,
		job.SkippedDone: Cancelled, job.DroppedRecovered: Cancelled, job.Refused: Cancelled, job.Expired: Cancelled,
		job.Withdrawn: Cancelled,
	} {
		if got := Final(o); got != want {
			t.Errorf("%s: %s, want %s", o, got, want)
		}
	}
}

// LIQ-10, TIER-12: three retries for what may pass, none for what will not.
func TestCoolDown(t *testing.T) {
	const settled = 10 * time.Second
	for _, c := range []struct {
		o       job.Outcome
		tries   uint32
		want    time.Duration
		givenUp bool
	}{
		{job.Reverted, 0, 2 * time.Second, false}, {job.Reverted, 1, 4 * time.Second, false},
		{job.Reverted, 2, 8 * time.Second, false},
		{job.Reverted, 3, 30 * time.Second, true}, {job.Reverted, 4, time.Minute, true},
		{job.Reverted, 7, 8 * time.Minute, true}, {job.Reverted, 8, 10 * time.Minute, true},
		{job.Reverted, 1 << 31, 10 * time.Minute, true},
		{job.Refused, 0, lastRetry, true}, {job.Expired, 0, lastRetry, true}, {job.Foreign, 0, 2 * time.Second, false},
		{job.Foreign, 3, lastRetry, true},
		{job.Done, 0, settled, false}, {job.LostRace, 4, settled, false}, {job.SkippedDone, 9, settled, false},
		{job.CancelledByVenue, 1, settled, false},
		{job.DroppedRecovered, 7, 0, false}, {job.Withdrawn, 2, settled, false},
	} {
		if got := CoolDown(c.o, c.tries, settled); got != c.want || GivenUp(c.o, c.tries) != c.givenUp {
			t.Errorf("%s after %d: %s, given up %t; want %s, %t", c.o, c.tries, got, GivenUp(c.o, c.tries), c.want,
				c.givenUp)
		}
	}
	if got := After(job.Reverted, 1, 1000, settled); got != (Rest{RetryAfterMs: 5000}) {
		t.Errorf("the rest is %+v", got)
	}
}

// A job that simulates well and reverts on the chain, for ever: without the longer rests it was sent 2703 times a day.
func TestPoisonedJobIsSeldomSent(t *testing.T) {
	const landing, most = 2 * time.Second, 155
	sent, tries := 0, uint32(0)
	for at := time.Duration(0); at < 24*time.Hour; at += landing + CoolDown(job.Reverted, tries-1, 10*time.Second) {
		sent++
		tries++
	}
	if sent > most {
		t.Errorf("it is sent %d times a day, want %d at most", sent, most)
	}
}

func receiptAt(block uint64, fork byte) *Receipt {
	return &Receipt{TxHash: chain.Hash{1}, Block: chain.BlockRef{Number: block, Hash: chain.Hash{byte(block), fork}}}
}

func TestNext(t *testing.T) {
	p := DefaultPolicy()
	just := Sending{Ever: true, First: 9, Last: 9, Answer: Pooled}
	long := Sending{Ever: true, First: 1, Last: 9, Answer: Pooled}
	due := Sending{Ever: true, First: 8, Last: 7, Answer: Pooled}
	for name, c := range map[string]struct {
		mined    *Receipt
		observed Observation
		want     Step
	}{
		"just sent":                 {nil, Observation{Head: 9, Sent: just}, Wait},
		"not mined for two blocks":  {nil, Observation{Head: 9, Sent: due}, Broadcast},
		"not mined for long":        {nil, Observation{Head: 9, Sent: long}, Replace},
		"a block took one as cheap": {nil, Observation{Head: 9, Enough: 6, Sent: long}, Wait},
		"that is longer ago":        {nil, Observation{Head: 9, Enough: 5, Sent: long}, Replace},
		"the head went down":        {nil, Observation{Head: 8, Sent: just}, Broadcast},
		"adopted, never sent by us": {nil, Observation{Head: 9}, Resume},
		"too cheap": {nil,
			Observation{Head: 9, Sent: Sending{Ever: true, First: 9, Last: 9, Answer: TooCheap}}, Replace},
		"taken by nobody, ever": {nil,
			Observation{Head: 9, Sent: Sending{Ever: true, First: 1, Last: 1, Answer: Never}}, CancelNonce},
		"no node has it":               {nil, Observation{Head: 9, Sent: Sending{Ever: true, First: 1, Last: 7}}, Resume},
		"no node has it, just offered": {nil, Observation{Head: 9, Sent: Sending{Ever: true, First: 1, Last: 8}}, Wait},
		"mined":                        {nil, Observation{Head: 9, Receipt: receiptAt(9, 0), Sent: long}, Record},
		"mined in a final block":       {nil, Observation{Head: 9, Final: 9, Receipt: receiptAt(9, 0)}, Record},
		"mined, known, not final":      {receiptAt(9, 0), Observation{Head: 9, Final: 8, Receipt: receiptAt(9, 0)}, Wait},
		"mined, known, final": {receiptAt(9, 0), Observation{Head: 9, Final: 9, Receipt: receiptAt(9, 0)},
			Finish},
		"mined again on another branch": {receiptAt(9, 0), Observation{Head: 9, Final: 9, Receipt: receiptAt(9, 1)},
			Record},
		"reorganised away":          {receiptAt(9, 0), Observation{Head: 9, Sent: long}, Unmine},
		"asked a node that lags":    {receiptAt(9, 0), Observation{Head: 8, Sent: long}, Wait},
		"nonce spent, receipt late": {nil, Observation{Head: 9, Final: 9, FinalNonce: 6, Sent: long}, Wait},
		"nonce spent by others": {nil, Observation{Head: 9, Final: 9, FinalNonce: 6, Missing: p.LostAfter, Sent: long},
			NonceLost},
		"an earlier nonce was spent": {nil, Observation{Head: 9, Final: 9, FinalNonce: 5, Sent: due, Missing: p.LostAfter},
			Broadcast},
	} {
		f := PendingTx{Intent: Intent{Nonce: 5, State: Sent, Job: job.Job{Kind: job.Order}}, Mined: c.mined}
		if got := p.Next(f, c.observed); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What an operator calls off is freed once, whoever broadcast it, unless the chain has it already.
func TestNextOfACalledOff(t *testing.T) {
	p := DefaultPolicy()
	f := PendingTx{Intent: Intent{Nonce: 5, State: Sent, CalledOff: "ops: stuck"}, Txs: []Tx{{Kind: Exec}}}
	leaving := f
	leaving.Txs = append(leaving.Txs, Tx{Kind: Cancel})
	just := Sending{Ever: true, First: 9, Last: 9}
	for name, c := range map[string]struct {
		pending  PendingTx
		observed Observation
		want     Step
	}{
		"just sent":                          {f, Observation{Head: 9, Sent: just}, CancelNonce},
		"left by another lease term":         {f, Observation{Head: 9}, CancelNonce},
		"mined meanwhile":                    {f, Observation{Head: 9, Receipt: receiptAt(9, 0), Sent: just}, Record},
		"spent meanwhile, receipt late":      {f, Observation{Head: 9, Final: 9, FinalNonce: 6, Sent: just}, Wait},
		"being freed":                        {leaving, Observation{Head: 9, Sent: just}, Wait},
		"being freed, by another lease term": {leaving, Observation{Head: 9}, Resume},
	} {
		if got := p.Next(c.pending, c.observed); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Each lane has its own patience, in blocks.
func TestPatience(t *testing.T) {
	p := DefaultPolicy()
	for kind, patience := range map[job.Kind]uint64{job.Liquidation: 2, job.Adl: 2, job.Order: 4, job.Deposit: 12,
		Filler: 12} {
		f := PendingTx{Intent: Intent{Job: job.Job{Kind: kind}}}
		for passed := range patience + 2 {
			s := Observation{Head: 100 + passed, Sent: Sending{Ever: true, First: 100, Last: 100 + passed,
				Answer: Pooled}}
			if got := p.Next(f, s); (got == Replace) != (passed >= patience) {
				t.Errorf("%s after %d blocks: %s", kind, passed, got)
			}
		}
	}
}

// What nodes refuse is offered again after pauses that double, and never at a higher price; what they take is soon
// offered again, and a head that went down ends any pause.
func TestRefusalsSlowThemselvesDown(t *testing.T) {
	p := DefaultPolicy()
	var got []uint64
	for refused := range 9 {
		s := Observation{Head: 100, Sent: Sending{Ever: true, First: 100, Last: 100, Refused: refused}}
		for f := (PendingTx{Txs: []Tx{{Kind: Exec}}}); p.Next(f, s) != Resume; s.Head++ {
			if step := p.Next(f, s); step != Wait {
				t.Fatalf("refused %d times: %s after %d blocks", refused, step, s.Head-100)
			}
		}
		got = append(got, s.Head-100)
		if s.Head = 99; !p.Due(s) {
			t.Errorf("refused %d times: not due though the head went down", refused)
		}
	}
	if want := []uint64{2, 2, 4, 8, 16, 32, 32, 32, 32}; !slices.Equal(got, want) {
		t.Errorf("the pauses are %v blocks, want %v", got, want)
	}
}

// Whatever the chain shows, an intent ends only on a final block, and a nonce with a receipt is never lost.
func TestNextNeverEndsEarly(t *testing.T) {
	p := DefaultPolicy()
	maybe := func(t *rapid.T, label string) *Receipt {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		return receiptAt(rapid.Uint64Range(1, 6).Draw(t, label+" block"), rapid.Byte().Draw(t, label+" fork")%2)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := PendingTx{Intent: Intent{Nonce: rapid.Uint64Range(0, 3).Draw(t, "nonce")}, Mined: maybe(t, "mined")}
		s := Observation{
			Receipt: maybe(t, "receipt"), Head: rapid.Uint64Range(1, 6).Draw(t, "head"), Final: rapid.Uint64Range(0, 6).
					Draw(t, "final"),
			FinalNonce: rapid.Uint64Range(0, 4).Draw(t, "final nonce"), Sent: Sending{
				Ever: rapid.Bool().Draw(t, "ever"), First: rapid.Uint64Range(0, 6).Draw(t, "first"),
				Last:    rapid.Uint64Range(0, 6).Draw(t, "last"),
				Answer:  Answer(rapid.IntRange(0, 3).Draw(t, "answer")),
				Refused: rapid.IntRange(0, 99).Draw(t, "refused"),
			},
			Missing: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "missing")),
		}
		switch p.Next(f, s) {
		case Finish:
			if f.Mined == nil || s.Receipt == nil || !f.Mined.Same(*s.Receipt) || s.Receipt.Block.Number > s.Final {
				t.Fatal("finished without a stored receipt in a final block")
			}
		case NonceLost:
			if s.Receipt != nil || f.Mined != nil || s.FinalNonce <= f.Intent.Nonce || s.Missing < p.LostAfter {
				t.Fatal("lost too early")
			}
		case Replace:
			if s.Sent.Answer != Pooled && s.Sent.Answer != TooCheap {
				t.Fatal("pays more for what no node has")
			}
		}
		switch step := p.Next(f, s); step {
		case Broadcast, Resume, Replace, CancelNonce:
			if s.Receipt != nil || s.FinalNonce > f.Intent.Nonce {
				t.Fatal("broadcast what cannot be mined any more")
			}
		}
	})
}
