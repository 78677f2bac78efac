package planner

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// DLY-2, DLY-10: a planner's scanner books fees and releases them, asks for the day's report, and notices what expires,
// with every kind at hand.
func TestScannerOfAPlanner(t *testing.T) {
	db := pgtest.DB(t)
	signer := chain.Address{0xa}
	applyOneBlock(t, db, signer)
	cfg := DefaultConfig()
	cfg.Commission = delayed.CommissionConfig{Agents: []delayed.Agent{{Agent: "ann", Signers: []chain.Address{signer}}}}
	var text strings.Builder
	s := newDelayed(cfg, "test", delayed.NewMetrics(prometheus.NewRegistry()), zerolog.New(&text), db)
	for range 2 { // what a source added may fall due after the scan began
		if _, err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wallets, err := db.Wallets().Verify(t.Context())
	if err != nil || len(wallets) != 1 || wallets[0].Agent != "ann" || wallets[0].Balance != chain.U64(120).Int() ||
		wallets[0].Frozen.Sign() != 0 {
		t.Errorf("wallets %+v, %v", wallets, err)
	}
	status := map[string]delayed.Status{}
	jobs, err := db.Delayed().List(t.Context(), "", "", 10)
	for _, j := range jobs {
		status[j.Kind] = j.Status
	}
	if err != nil || len(jobs) != 3 || status[delayed.CommissionRelease] != delayed.Done ||
		status[delayed.Expiry] != delayed.Done ||
		status[delayed.DailyReport] != delayed.Pending {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	if !strings.Contains(text.String(), "expired without having been executed") {
		t.Errorf("logged %s", text.String())
	}
}

// applyOneBlock applies a final block with one fee for the signer and a deposit that nobody executed.
func applyOneBlock(t *testing.T, db *pg.DB, signer chain.Address) {
	t.Helper()
	block := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, TimeMs: 1}
	tx := chain.Tx{Hash: chain.Hash{1}, Block: block.Number, BlockHash: block.Hash}
	pgtest.Hold(t, db, block, perp.Transaction{Tx: tx},
		perp.KeeperFee{Keeper: signer, Amount: chain.U64(120),
			Stamp: perp.Stamp{Block: block.Number, Log: 3, TxHash: tx.Hash}},
		perp.Request{Kind: perp.Deposit, Key: chain.Hash{5}, Account: chain.Address{5},
			UpdatedAtTime: chain.U64(1), Status: perp.Created})
}
