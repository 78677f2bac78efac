package jobstory

import (
	"context"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
)

const dueMs = 1_800_000_000_000

var (
	weth, usdc    = namingtest.WETH, namingtest.USDC
	ours, another = chain.Hash{0xaa}, chain.Hash{0xbb}
	signer        = chain.Address{0x71}
	liquidation   = job.Job{ID: "liquidation:0x01:1", Kind: job.Liquidation, Key: chain.Hash{1},
		Account: chain.Address{0xac}, Market: namingtest.Market.MarketToken, Collateral: usdc, IsLong: true,
		DueSinceMs: dueMs, Evidence: job.Evidence{Block: chain.BlockRef{Number: 75}, Reason: "margin ratio 0.00 %"}}
)

func after(ms int64) *time.Time {
	at := time.UnixMilli(dueMs + ms)
	return &at
}

// sentOnce is an attempt at the liquidation whose transaction was sent 0.14 s after it was due.
func sentOnce() txstore.Attempt {
	return txstore.Attempt{
		Intent: txm.Intent{ID: 61, Job: liquidation, Attempt: 1, Signer: signer, State: txm.Sent},
		Txs: []txstore.Signed{{Hash: ours, Nonce: 3, Seq: 1, Kind: "EXEC", Cap: 5e9, Token: 1, Sends: 1,
			At: *after(130), First: after(140), Last: after(140)}},
		QueuedAt: *after(120)}
}

func mined(a txstore.Attempt, ok bool, outcome job.Outcome, reason string) txstore.Attempt {
	a.Mined = &txm.Receipt{TxHash: ours, Block: chain.BlockRef{Number: 77}, OK: ok, GasUsed: 2_000_000,
		GasPrice: 3e9, Outcome: outcome, Reason: reason}
	a.SeenAt, a.EndedAt, a.FeeEarned = after(900), after(4000), chain.U64(1e16)
	a.Intent.Outcome, a.Intent.Reason = outcome, reason
	return a
}

// told is a story of one stored attempt, with the prices that it was due by.
func told(t *testing.T, a txstore.Attempt) *Story {
	t.Helper()
	names := naming.New(namingtest.Node{}, namingtest.State{})
	names.Read(context.Background())
	y := newStory(Source{Names: names, Tier: tier.DefaultConfig()})
	y.Tier.Enabled = true
	y.addAttempt(a)
	cents := chain.Pow10(10)
	for token, p := range map[chain.Address]chain.Uint{weth: chain.U64(299_191).Mul(cents), usdc: chain.Pow10(24)} {
		y.quoted[a.Intent.Job.ID] = append(y.quoted[a.Intent.Job.ID], price.Report{Token: token, Min: p, Max: p})
	}
	return y
}

// A summary is read in ten lines: names and dollars in place of digits, times since the job was due.
func TestSummary(t *testing.T) {
	liquidated := mined(sentOnce(), true, job.Done, "")
	liquidated.Final = true
	liquidated.Mined.Settlement = &job.Settlement{SizeDeltaUsd: chain.U64(279_294).Mul(perp.One),
		CollateralDelta: chain.U64(1_234_500_000), Returned: []job.Payment{{Token: usdc, Amount: chain.U64(500_000)}}}
	takenOver := mined(sentOnce(), true, job.Done, "")
	takenOver.Txs = append(takenOver.Txs, txstore.Signed{Hash: another, Nonce: 3, Seq: 2, Token: 2, At: *after(12_000)})
	reverted := told(t, mined(sentOnce(), false, job.LostRace, "somebody was first"))
	reverted.closers[liquidation.Key] = closer{"tier 1's signer 0xbe", chain.Tx{Hash: another, GasPrice: 7e9},
		perp.Stamp{Block: 76, TimeMs: dueMs + 500}}
	for name, c := range map[string]struct {
		story *Story
		want  []string
	}{
		"liquidated": {told(t, liquidated), []string{
			"job: liquidation in " + liquidation.Market.Hex() + ", long, of " + liquidation.Account.Hex(),
			"due: 2027-01-15 08:00:00.000 UTC, block 75: margin ratio 0.00 %",
			"WETH $2,991.91", "USDC $1", "turn: tier 1, ours",
			"sent: +0.14 s, nonce 3, for up to 5 Gwei, by " + signer.Hex(),
			"landed: +0.90 s, block 77, gas price 3 Gwei, tx " + ours.Hex(),
			"cost: 0.006 BNB for 2,000,000 gas, fee earned 0.01 BNB",
			"settled: closed $279,294.00, left $0.00, collateral taken 1,234.5 USDC, left 0 USDC, returned 0.5 USDC",
			"result: executed +4.00 s, final"}},
		"taken over": {told(t, takenOver), []string{"; signed 2 times, last +12.00 s",
			"taken over: +12.00 s, by another sender of this keeper: lease term 2, after 1",
			"result: executed +4.00 s, not final yet"}},
		"reverted": {reverted, []string{"cost: 0.006 BNB",
			"closed by: tier 1's signer 0xbe, +0.50 s, block 76, gas price 7 Gwei",
			"result: lost_race +4.00 s: somebody was first"}},
		"under way": {told(t, sentOnce()), []string{"result: sent"}},
	} {
		points := c.story.Summary()
		lines := make([]string, len(points))
		for i, p := range points {
			lines[i] = p.What + ": " + p.Said
		}
		text := strings.Join(lines, "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		if len(points) > 10 {
			t.Errorf("%s takes %d lines:\n%s", name, len(points), text)
		}
	}
	if points := newStory(Source{}).Summary(); points != nil {
		t.Errorf("a summary of nothing: %v", points)
	}
}

// Of a job that planners have published and this keeper has not taken up that is told.
func TestSummaryOfAPublishedJob(t *testing.T) {
	y := newStory(Source{})
	y.said = append(y.said, liquidation)
	if points := y.Summary(); len(points) != 3 || points[2].Said != "this keeper has not taken it up" {
		t.Error(points)
	}
}

// Who asks for a job by its id is told that one; who asks for its position is told the newest, and of how many.
func TestSummaryOfOneOfSeveralJobs(t *testing.T) {
	y := told(t, mined(sentOnce(), true, job.Done, ""))
	later := liquidation
	later.ID, later.DueSinceMs = "liquidation:0x01:2", dueMs+60_000
	y.said = append(y.said, later)
	y.born(later)
	if points := y.Summary(); !strings.Contains(points[0].Said, "the newest of 2 jobs") ||
		!strings.Contains(points[1].Said, "08:01:00") {
		t.Error(points)
	}
	y.asked = liquidation.ID
	if points := y.Summary(); strings.Contains(points[0].Said, "jobs") ||
		!strings.Contains(points[1].Said, "08:00:00") ||
		points[len(points)-1].Said != "executed +4.00 s, not final yet" {
		t.Error(points)
	}
}
