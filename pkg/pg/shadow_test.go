package pg_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/shadow"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// What would have been sent stays as it was first sent, and is read back as it was kept.
func TestShadowTrials(t *testing.T) {
	db := pgtest.DB(t)
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{follow(ground)}}))
	open := shadow.Trial{JobID: "order:x:1", DueSinceMs: 7, Kind: job.Order, Key: chain.Hash{1},
		Account: chain.Address{2},
		Market:  chain.Address{3}, IsLong: true, ObservedMs: 1000, Reverts: 1, Outcome: job.DroppedRecovered,
		Reason: "a \x00 text from outside"}
	sent := open
	sent.SentBlock, sent.SentMs, sent.Gas, sent.GasPrice, sent.Outcome = 99, 1400, 21_000, 5, ""
	later := sent
	later.SentBlock, later.ObservedMs = 120, 2000
	for _, one := range []shadow.Trial{open, sent, later} {
		must(t, db.Shadow().Save(t.Context(), []shadow.Trial{one}))
	}
	trials, _, upTo, err := db.Shadow().Evidence(t.Context(), 1000)
	if err != nil || len(trials) != 1 || trials[0] != sent || upTo.Number != ground.Number+1 {
		t.Errorf("%+v up to %+v, %v; want %+v", trials, upTo, err, sent)
	}
	if trials, _, _, err = db.Shadow().Evidence(t.Context(), 1001); err != nil || len(trials) > 0 {
		t.Errorf("%+v, %v were heard later", trials, err)
	}
}

// What the chain shows of jobs: who did what a keeper was needed for, what its owner ended, and nothing that was made
// and ended by one transaction.
func TestFatesOfJobs(t *testing.T) {
	db := pgtest.DB(t)
	by, born := chain.Address{0xb}, perp.Stamp{TxHash: chain.Hash{0xee}, TimeMs: 1}
	at := func(n byte) perp.Stamp {
		return perp.Stamp{Block: ground.Number + 1, Log: uint32(n), TxHash: chain.Hash{0xf0, n}, TimeMs: 5000}
	}
	order := func(n byte, status perp.Status, reason string) perp.Order {
		return perp.Order{Key: chain.Hash{n}, Status: status, Reason: reason, Birth: born, Stamp: at(n)}
	}
	within := order(4, perp.Executed, "")
	within.Birth = within.Stamp
	chosen := order(5, perp.Executed, "")
	chosen.Birth, chosen.SecondaryOrderType = chosen.Stamp, chain.U64(1)
	rows := []perp.Row{
		order(1, perp.Executed, ""), order(2, perp.Cancelled, "USER_INITIATED_CANCEL"),
		order(3, perp.Cancelled, "the venue's rule"), within, chosen,
		perp.Settlement{OrderKey: chosen.Key, PositionKey: chain.Hash{0x50}, Market: chain.Address{9}, IsLong: true,
			Stamp: chosen.Stamp},
		perp.Settlement{OrderKey: chain.Hash{6}, PositionKey: chain.Hash{0x60}, OrderType: perp.Liquidation,
			Stamp: at(6)},
		perp.Position{PositionKey: chain.Hash{0x60}, Stamp: at(6)},
		perp.Position{PositionKey: chain.Hash{0x70}, Stamp: at(7)},
		perp.Request{Key: chain.Hash{8}, Kind: perp.Deposit, Status: perp.Executed, Birth: born, Stamp: at(8)},
		perp.Request{Key: chain.Hash{9}, Kind: perp.Shift, Status: perp.Created, Birth: born, Stamp: at(9)},
		perp.Transaction{Tx: chain.Tx{Hash: at(1).TxHash, From: by, GasUsed: 100, GasPrice: 3}},
		perp.KeeperFee{Keeper: by, Amount: chain.U64(700), Stamp: at(1)},
	}
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	must(t, err)
	must(t, p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{follow(ground, rows...)}}))
	_, fates, _, err := db.Shadow().Evidence(t.Context(), 5000)
	must(t, err)
	got := map[string]shadow.Fate{}
	for _, f := range fates {
		got[string(f.Kind)+f.Key.Hex()[:4]] = f
	}
	for name, owner := range map[string]bool{"order0x01": false, "order0x02": true, "order0x03": false,
		"adl0x50":         false,
		"liquidation0x60": false, "liquidation0x70": true, "deposit0x08": false} {
		if f, is := got[name]; !is || f.ByOwner != owner || f.Block != ground.Number+1 {
			t.Errorf("%s: %+v, %v", name, f, is)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more than there was: %+v", got)
	}
	for _, f := range fates {
		if f.Key == (chain.Hash{1}) && (f.By != by || f.Fee != chain.U64(700) || f.Gas != chain.U64(300)) {
			t.Errorf("%+v", f)
		}
	}
}
