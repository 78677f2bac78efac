package sender

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/txmgr/txm"
)

func TestResultOf(t *testing.T) {
	j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Account: chain.Address{2}, DueSinceMs: 5}
	r := &txm.Receipt{TxHash: chain.Hash{3}, Block: chain.BlockRef{Number: 4, Hash: chain.Hash{4}}, GasUsed: 6,
		GasPrice: 7}
	e := txm.Ended{
		Intent: txm.Intent{Job: j, Attempt: 2, Signer: chain.Address{8}, Nonce: 9, Outcome: job.Done,
			Reason: "executed"},
		EndedAt: time.UnixMilli(10), Receipt: r,
	}
	want := job.Result{
		JobID: j.ID, Attempt: 2, Kind: job.Order, Key: j.Key, Account: j.Account, Outcome: job.Done, Reason: "executed",
		TxHash: r.TxHash, Signer: chain.Address{8},
		Nonce: 9, Block: r.Block, GasUsed: 6, GasPrice: 7, DueSinceMs: 5, AtMs: 10,
	}
	if got := resultOf(e); got != want {
		t.Errorf("got %+v", got)
	}
	e.Receipt = nil
	if got := resultOf(e); !got.TxHash.IsZero() || got.GasUsed != 0 {
		t.Errorf("without a receipt: %+v", got)
	}
}

// A contract may give any bytes for a reason, and as many as it has gas for: what cannot be written would keep
// everything that ended later from being told.
func TestAnyReasonCanBeTold(t *testing.T) {
	for given, want := range map[string]string{
		"executed": "executed", "no \xff \xc3\x28": "no \uFFFD \uFFFD(", "nothing\x00": "nothing\x00",
		"größer":                  "größer",
		strings.Repeat("ü", 9999): strings.Repeat("ü", 1024/2),
	} {
		e := txm.Ended{Intent: txm.Intent{Job: job.Job{ID: "order:x:1", Kind: job.Order}, Outcome: job.CancelledByVenue,
			Reason: given}}
		r, err := wire.Encode(nil, wire.Result{Result: resultOf(e)}, 0, 0)
		if err != nil {
			t.Errorf("%.20q: %v", given, err)
			continue
		}
		if m, _, err := wire.Decode(r); err != nil || m.(wire.Result).Reason != want {
			t.Errorf("%.20q: %+v, %v", given, m, err)
		}
		letter, err := deadLetter(e, wire.DefaultConfig())
		if err != nil || header(letter, "error") != want {
			t.Errorf("%.20q: the dead letter says %.20q, %v", given, header(letter, "error"), err)
		}
	}
}
