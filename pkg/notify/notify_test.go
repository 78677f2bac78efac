package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// LIQ-12: the owner is told of a liquidation, the operator of one that was given up, and nobody of anything else.
func TestAbout(t *testing.T) {
	r := job.Result{
		JobID: "liquidation:x:1", Attempt: 2, Kind: job.Liquidation, Key: chain.Hash{1}, Account: chain.Address{2},
		Outcome: job.Done, TxHash: chain.Hash{3},
		Signer: chain.Address{4}, Block: chain.BlockRef{Number: 5}, AtMs: 6, Market: chain.Address{7},
		Collateral: chain.Address{8}, IsLong: true,
		Settlement: &job.Settlement{SizeDeltaUsd: chain.Pow10(34),
			Returned: []job.Payment{{Token: chain.Address{8}, Amount: chain.U64(9)}}},
	}
	want := Message{ID: "liquidation:x:1#2", Event: PositionLiquidated, ChainID: 56, AtMs: 6, Liquidation: &Liquidation{
		Job: r.JobID, Attempt: 2, Position: r.Key.Hex(), Account: r.Account.Hex(), Market: r.Market.Hex(),
		Collateral: r.Collateral.Hex(), IsLong: true,
		Outcome: "executed", TxHash: r.TxHash.Hex(), Block: 5, Signer: r.Signer.Hex(), Settlement: r.Settlement,
	}}
	m, to, concerns := About(56, r)
	if got := *m.Liquidation; !concerns || to != Owner || got != *want.Liquidation || m.ID != want.ID ||
		m.Event != want.Event || m.AtMs != 6 || m.ChainID != 56 {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	body, err := json.Marshal(m)
	if err != nil || !strings.Contains(string(body), `"size_delta_usd":"10000000000000000000000000000000000"`) ||
		!strings.Contains(string(body),
			`"returned":[{"token":"0x0800000000000000000000000000000000000000","amount":"9"}]`) {
		t.Errorf("%s, %v", body, err)
	}
	r.Kind = job.Adl
	if m, to, concerns = About(56, r); !concerns || to != Owner || m.Event != positionDeleveraged ||
		m.Liquidation.Settlement != r.Settlement {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	r.Kind = job.Liquidation
	r.Outcome, r.GivenUp, r.Reason, r.TxHash, r.Settlement = job.Reverted, true, "why", chain.Hash{}, nil
	if m, to, concerns = About(56, r); !concerns || to != Operator || m.Event != LiquidationFailed ||
		m.Liquidation.TxHash != "" || m.Liquidation.Reason != "why" {
		t.Errorf("%t, to %s: %+v", concerns, to, m)
	}
	for what, change := range map[string]func(*job.Result){
		"a lost race":              func(r *job.Result) { r.Outcome, r.GivenUp = job.LostRace, false },
		"a failure before another": func(r *job.Result) { r.GivenUp = false },
		"a failed deleveraging":    func(r *job.Result) { r.Kind = job.Adl },
		"an order":                 func(r *job.Result) { r.Kind, r.Outcome = job.Order, job.Done },
	} {
		other := r
		change(&other)
		if _, _, concerns := About(56, other); concerns {
			t.Errorf("somebody is told of %s", what)
		}
	}
}

// What people read names what they look for, in one line and in several.
func TestText(t *testing.T) {
	l := Message{ID: "liquidation:x:1#2", Event: LiquidationFailed, ChainID: 56,
		Liquidation: &Liquidation{Position: "0xp", Account: "0xa", Outcome: "reverted", Reason: "why", Job: "j"}}
	if got := l.Subject(); got != "liquidation.failed: position 0xp (chain 56)" {
		t.Errorf("the subject is %q", got)
	}
	want := l.Subject() + "\noutcome: reverted\nreason: why\naccount: 0xa\njob: j\nid: liquidation:x:1#2"
	if l.Text() != want {
		t.Errorf("the text is %q, want %q", l.Text(), want)
	}
	a := Message{ID: "a:1", Event: KeepersAlarm, ChainID: 56, Alarm: &Alarm{Name: "blind", Text: "it sees nothing"}}
	if a.Subject() != "keepers.alarm: blind (chain 56)" || !strings.Contains(a.Text(), "\nit sees nothing\nid: a:1") {
		t.Errorf("an alarm is %q", a.Text())
	}
	if a.Alarm.Over = true; a.Subject() != "over: blind (chain 56)" {
		t.Errorf("the end of an alarm is %q", a.Subject())
	}
}
