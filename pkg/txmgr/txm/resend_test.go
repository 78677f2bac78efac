package txm

import (
	"testing"

	"perpkeeper/pkg/job"
)

// What was broadcast and is not mined is broadcast again, or replaced, within two blocks, whatever its lane and however
// often that was done before: nodes do not do it for us.
func TestBroadcastAgainWithinTwoBlocks(t *testing.T) {
	p := DefaultPolicy()
	for _, kind := range []job.Kind{job.Liquidation, job.Order, job.AdlState} {
		f := PendingTx{Intent: Intent{Nonce: 5, State: Sent, Job: job.Job{Kind: kind}}, Txs: []Tx{{Kind: Exec}}}
		last := uint64(100)
		for head := last; head < 200; head++ {
			sent := Sending{Ever: true, First: 100, Last: last, Answer: Pooled}
			switch step := p.Next(f, Observation{Head: head, Sent: sent}); step {
			case Broadcast, Replace:
				last = head
			default:
				if head-last >= 2 {
					t.Fatalf("%s: %s at block %d, last broadcast at block %d", kind, step, head, last)
				}
			}
		}
	}
}
