package txstore_test

import (
	"cmp"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/pnl"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

const hourMs = uint64(time.Hour / time.Millisecond)

// ledgerOf lays out blocks an hour apart with transactions of a signer, and the fees they were paid.
type ledgerOf struct {
	signer chain.Address
	nonce  uint64
	blocks []pg.AppliedBlock
	// since is the time of the block below the first, and apart how far blocks are apart if it is not an hour, in ms.
	since, apart uint64
}

// timeOf is the time of the n-th block, from 1, in ms.
func (l *ledgerOf) timeOf(n int) uint64 { return l.since + cmp.Or(l.apart, hourMs)*uint64(n) }

// block adds a block.
func (l *ledgerOf) block(rows ...perp.Row) {
	parent := ground
	if n := len(l.blocks); n > 0 {
		parent = l.blocks[n-1].BlockRef
	}
	b := follow(parent, rows...)
	b.TimeMs = l.timeOf(len(l.blocks) + 1)
	l.blocks = append(l.blocks, b)
}

// tx is the rows of one transaction in the block that is added next.
func (l *ledgerOf) tx(hash chain.Hash, ok bool, gas, price, fee uint64) []perp.Row {
	n := uint64(len(l.blocks))
	at := perp.Stamp{Block: ground.Number + n + 1, TxHash: hash, TimeMs: l.timeOf(len(l.blocks) + 1)}
	rows := []perp.Row{perp.Transaction{Stamp: at, Tx: chain.Tx{Hash: hash, From: l.signer, Nonce: l.nonce,
		Block: at.Block, OK: ok, GasUsed: gas, GasPrice: price}}}
	l.nonce++
	if fee > 0 {
		rows = append(rows, perp.KeeperFee{Keeper: l.signer, Amount: chain.U64(fee), Stamp: at})
	}
	return rows
}

// receipt stores what a sender saw of a transaction in the n-th block, some minutes after the block's time.
func (d holder) receipt(t *testing.T, l *ledgerOf, intent int64, hash chain.Hash, n int, ok, final bool, gas,
	price int64) {
	t.Helper()
	execute(t, d.Address, `INSERT INTO keeper.tx_receipt (intent, tx_hash, block, block_hash, ok, gas_used, gas_price,
			outcome, reason, final, seen_at, signer, kind)
		VALUES ($1, $2, $3, sha256($2), $4, $5, $6, '', '', $7,
			to_timestamp($8::bigint / 1000) + interval '10 minutes', $9, 'order')`,
		intent, hash[:], int64(ground.Number)+int64(n), ok, gas, price, final, int64(l.timeOf(n)), l.signer[:])
}

// P&L is the fees and gas of the signers' transactions in final blocks of the last while: by kind where this keeper
// made them, and what was lost or only freed a nonce apart. What left no log is known from the keeper's own receipts.
// External transactions and what is not final are left out.
func TestProfitAndLoss(t *testing.T) {
	d := newHolder(t, 4)
	won, lost := d.MustClaim(t, d.Intents[0], 0, 0), d.MustClaim(t, d.Intents[1], 1, 1)
	withdrawn := d.MustClaim(t, d.Intents[2], 2, 2)
	freeing := txm.SignedTx{Nonce: 2, Hash: chain.Hash{0xf}, Raw: []byte{2}, Gas: txm.EmptyGas, Tip: 2, Cap: 2}
	must(t, txstore.NewIntents(d.DB).
		Replace(t.Context(), d.Fence, txm.Replacement{Intent: d.Intents[2], After: withdrawn.Hash,
			Kind: txm.Cancel, Tx: freeing, Cancel: txm.Verdict{Outcome: job.Withdrawn, Reason: "an operator's"}}))
	l := &ledgerOf{signer: d.Fence.Signer}
	stranger := &ledgerOf{signer: chain.Address{0xbb}}
	l.block(l.tx(won.Hash, true, 100, 3, 1000)...) // 1 h
	d.receipt(t, l, d.Intents[0], won.Hash, 1, true, true, 100, 3)
	l.block() // 2 h
	d.receipt(t, l, d.Intents[1], lost.Hash, 2, false, true, 50, 3)
	stranger.blocks = l.blocks
	l.block(stranger.tx(chain.Hash{0xaa}, true, 7, 7, 7)...) // 3 h
	d.receipt(t, l, d.Intents[2], freeing.Hash, 3, true, true, 21, 2)
	open := d.MustClaim(t, d.Intents[3], 3, 3)
	d.receipt(t, l, d.Intents[3], open.Hash, 4, false, false, 99999, 99) // not final
	l.nonce += 3                                                         // with one that another database has sent
	l.block(l.tx(chain.Hash{0xcc}, true, 10, 1, 5)...)                   // 4 h; of no transaction that is known
	l.block(l.tx(chain.Hash{0xdd}, true, 99999, 99, 9999)...)            // not final
	p, err := d.DB.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 10, Blocks: l.blocks}))
	if _, err := txstore.NewArchive(d.DB).ProfitAndLoss(t.Context(), 24*time.Hour); err == nil {
		t.Error("figures without a final block")
	}
	final := l.blocks[3].BlockRef
	must(t, p.Commit(t.Context(), pg.Commit{Next: 11, Finalized: final}))

	s, err := txstore.NewArchive(d.DB).ProfitAndLoss(t.Context(), 24*time.Hour)
	must(t, err)
	u := chain.U64
	want := pnl.Line{Name: "total", Transactions: 4, Lost: 1, Freed: 1, Fees: u(1005), Gas: u(300 + 150 + 42 + 10),
		LostGas: u(150), FreedGas: u(42)}
	if got := s.Total(); got != want || s.First != ground.Number+1 || s.Last != final.Number || s.Generation != 1 {
		t.Errorf("%+v of %+v, want %+v", got, s, want)
	}
	if got := s.Total().Net(); got != chain.I64(503) {
		t.Errorf("net %s", got)
	}
	if len(s.Accounts) != 1 || s.Accounts[0].Signer != l.signer || s.Accounts[0].Missing != 1 {
		t.Errorf("accounts %+v", s.Accounts)
	}
	unknown := pnl.Line{Name: "unknown", Transactions: 1, Fees: u(5), Gas: u(10)}
	if kinds := s.By(pnl.ByKind); len(kinds) != 2 || kinds[0].Name != "order" || kinds[1] != unknown {
		t.Errorf("by kind %+v", kinds)
	}

	if s, err = txstore.NewArchive(d.DB).ProfitAndLoss(t.Context(), 90*time.Minute); err != nil || s.Total().
		Transactions != 2 ||
		s.First != ground.Number+3 {
		t.Errorf("%+v, %v in the last 90 minutes", s, err)
	}
}
