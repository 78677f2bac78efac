package web_test

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
)

// sentTx is a transaction of the signer as the chain shows it, and what the venue paid for it.
type sentTx struct {
	hash            chain.Hash
	ok              bool
	gas, price, fee uint64 // price and fee in wei
}

// earn gives the state a final block with transactions.
func (s *site) earn(part *pg.Partition, next int64, block chain.BlockRef, sent ...sentTx) {
	s.t.Helper()
	var rows []pg.Change
	for n, tx := range sent {
		at := perp.Stamp{Block: block.Number, TxHash: tx.hash, TimeMs: block.TimeMs}
		rows = append(rows, pg.Change{After: perp.Transaction{Stamp: at, Tx: chain.Tx{Hash: tx.hash, From: signer,
			Nonce: uint64(n), Block: block.Number, OK: tx.ok, GasUsed: tx.gas, GasPrice: tx.price}}})
		if tx.fee > 0 {
			rows = append(rows, pg.Change{After: perp.KeeperFee{Keeper: signer, Amount: chain.U64(tx.fee), Stamp: at}})
		}
	}
	s.must(part.Commit(s.t.Context(), pg.Commit{Next: next, Finalized: block,
		Blocks: []pg.AppliedBlock{{BlockRef: block, Changes: rows}}}))
}

// The page adds up what keeperctl pnl does, along each dimension, over what is final alone.
func TestProfitAndLossPage(t *testing.T) {
	s := newSite(t)
	s.must(txstore.NewLeases(s.db).Register(t.Context(), signer, 56))
	vera := s.as("vera")
	if _, page := vera.get("/pnl"); !strings.Contains(page, "no block of the state is final yet") {
		t.Errorf("before the first final block:\n%s", page)
	}
	part, err := s.db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	s.must(err)
	s.earn(part, 1, chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6},
		TimeMs: uint64(time.Now().UnixMilli())},
		sentTx{chain.Hash{1}, true, 1_000_000, 2_000_000_000, 5_000_000_000_000_000},
		sentTx{chain.Hash{2}, false, 500_000, 2_000_000_000, 0})
	for path, want := range map[string][]string{
		"/pnl":                       {"unknown", "+0.002", "0.005", "0.001", "50.00 %"}, // net, fees, lost gas
		"/pnl?period=week&by=signer": {short(signer), "+0.002"},
		"/pnl?by=market":             {"none", "+0.002"},
	} {
		status, page := vera.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
		page = html.UnescapeString(page)
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s has no %q:\n%s", path, w, page)
			}
		}
	}
	for _, path := range []string{"/pnl?period=year", "/pnl?by=colour"} {
		if status, _ := vera.get(path); status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func short(a chain.Address) string { return a.Hex()[:8] + "…" }
