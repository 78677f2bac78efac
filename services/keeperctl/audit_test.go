package keeperctl

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/devnettest"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/tier/execution/ledger"
)

// auditBench is a devnet with a Master (keeper 0) and a Backup-1 (keeper 4), and the command that audits them.
type auditBench struct {
	t    *testing.T
	site *devnettest.Site
	node *evm.Client
	auditRun
}

func newAuditBench(t *testing.T) *auditBench {
	t.Helper()
	b := &auditBench{t: t, site: devnettest.Start(t)}
	cfg := defaultConfig()
	cfg.Venue.DataStore = chain.Address(b.site.Deployment().Contracts.DataStore)
	cfg.Chain.URLs = []secret.URL{secret.MustURL(b.site.RPC())}
	cfg.Keeper.Signers = []chain.Address{chain.Address(b.site.Keeper(0))}
	cfg.Tier.Peers = []tier.Peer{{Tier: 2, Signers: []chain.Address{chain.Address(b.site.Keeper(4))}}}
	b.auditRun = auditRun{cfg: cfg}
	var err error
	if b.node, err = evm.Dial(t.Context(), b.site.Deployment().ChainID, cfg.Chain, zerolog.Nop(),
		evm.NewMetrics(prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.node.Close)
	return b
}

// told runs the command.
func (b *auditBench) told(which auditRange) string {
	b.t.Helper()
	var out, progress strings.Builder
	d := b.auditRun
	d.out.Writer, d.progress = &out, &progress
	if err := d.run(b.t.Context(), b.node, which); err != nil {
		return "error: " + err.Error()
	}
	return out.String()
}

// jobs runs the command for machines.
func (b *auditBench) jobs(which auditRange) (rows []ledger.Row) {
	b.t.Helper()
	b.out.json = true
	defer func() { b.out.json = false }()
	out := json.NewDecoder(bytes.NewBufferString(b.told(which)))
	for out.More() {
		var line struct{ Job *ledger.Row }
		if err := out.Decode(&line); err != nil {
			b.t.Fatal(err)
		}
		if line.Job != nil {
			rows = append(rows, *line.Job)
		}
	}
	return rows
}

// long is a market order of 10× with 1000 USDC.
func long(m exchange.Market) exchange.OrderRequest {
	return exchange.OrderRequest{
		Market: m.Address, Collateral: m.Short, Type: exchange.MarketIncrease, IsLong: true,
		SizeUSD:          exchange.USD30(10_000_000_000, 0),
		CollateralAmount: big.NewInt(1_000e6),
	}
}

// TIER-17, TIER-18: two keepers execute the same order on a real chain, and the books tell from the chain alone who
// won, who lost, and what it cost.
func TestAuditOfARace(t *testing.T) {
	b := newAuditBench(t)
	s, m := b.site, b.site.Market("ETH/USD")
	from := s.Node().Head().Number.Uint64()

	raced := s.Order(long(m))
	winner, loser := s.Race(0, 4, s.ExecuteOrder(raced.Key, s.Reports(m, raced.Second)))
	alone := s.Order(long(m))
	s.Execute(4, s.ExecuteOrder(alone.Key, s.Reports(m, alone.Second)))
	healthy := s.Mined(s.Send(4, s.ExecuteLiquidation(m, m.Short, true, s.Reports(m, s.Now())), 1))
	if healthy.Status != types.ReceiptStatusFailed {
		t.Fatal("a healthy position was liquidated")
	}
	forgotten := s.Order(long(m))
	to := s.Node().Head().Number.Uint64()
	s.Eventually("the blocks are final", func() bool {
		final, err := b.node.Finalized(t.Context())
		return err == nil && final.Number >= to
	})

	byKey := map[chain.Hash]ledger.Row{}
	for _, r := range b.jobs(auditRange{from: from, to: to}) {
		byKey[r.Key] = r
	}
	r := byKey[chain.Hash(raced.Key)]
	if r.Kind != job.Order || r.State != ledger.Done || r.Result != execution.Executed || r.Winner.Tier != 1 ||
		r.Winner.Hash != chain.Hash(winner.TxHash) ||
		r.Winner.Gas != winner.GasUsed || r.AgeBy != ledger.ByRequest || r.AgeMs == 0 {
		t.Errorf("the race: %+v, winner %+v", r, r.Winner)
	}
	if len(r.Losers) != 1 || r.Losers[0].Tier != 2 || !r.Losers[0].Late || !r.Losers[0].Reverted ||
		r.Losers[0].Gas != loser.GasUsed ||
		r.Losers[0].GasPrice != loser.EffectiveGasPrice.Uint64() {
		t.Errorf("the loser: %+v", r.Losers)
	}
	if r := byKey[chain.Hash(alone.Key)]; r.Winner == nil || r.Winner.Tier != 2 || len(r.Losers) != 0 {
		t.Errorf("alone: %+v", r)
	}
	if r := byKey[chain.Hash(forgotten.Key)]; r.State != ledger.Waiting || r.BornMs == 0 {
		t.Errorf("forgotten: %+v", r)
	}
	early := 0
	for _, r := range byKey {
		if r.Kind == job.Liquidation && r.State == ledger.Attempted && len(r.Losers) == 1 && !r.Losers[0].Late &&
			r.Losers[0].Hash == chain.Hash(healthy.TxHash) {
			early++
		}
	}
	if early != 1 || len(byKey) != 4 {
		t.Errorf("%d liquidations too early, %d jobs", early, len(byKey))
	}
	table := b.told(auditRange{last: time.Hour})
	for _, want := range []string{"tier 1 0x", "tier 2 0x", "waiting", "everyone"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	t.Log("\n" + table)

	// The end of the range and its beginning cut the race in two: the loser still knows whom it lost to.
	if loser.BlockNumber.Cmp(winner.BlockNumber) > 0 {
		rows := b.jobs(auditRange{from: loser.BlockNumber.Uint64(), to: loser.BlockNumber.Uint64()})
		if len(rows) != 1 || rows[0].Late() != 1 {
			t.Errorf("the second half of the race: %+v", rows)
		}
	}
}

// Bad input is one clear line.
func TestAuditRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"":           "usage: keeperctl audit FROM TO | last DURATION",
		"7":          "usage",
		"9 7":        "from block 9 to block 7 is no range",
		"x 7":        `"x" is no block number`,
		"-1 7":       `"-1" is no block number`,
		"last 10":    `"10" is no time to look back`,
		"last -5m":   "is no time to look back",
		"last 5m 10": "usage",
	} {
		if _, err := parseAuditRange(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
	d := auditRun{cfg: defaultConfig()}
	if err := d.check(); err == nil || !strings.Contains(err.Error(), "keeper.signers") {
		t.Errorf("without a roster: %v", err)
	}
}
