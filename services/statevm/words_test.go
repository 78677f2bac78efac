package statevm

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
)

// Parameters that accounts set for themselves, as many as they pay for, are rows of the database: no partition holds
// them in memory, nor reads them at its start, after a failure or a reorg.
func TestParametersOfAccountsAreNotHeld(t *testing.T) {
	s := newSite(t)
	x, topic, generation := s.play(t, 7, 1)
	const others = 5000
	pgtest.Tamper(t, s.dbURL, `INSERT INTO state_g1.parameter
		(key, value, source, stamp_block, stamp_log, stamp_tx_hash, stamp_time_ms, part, rev)
		SELECT sha256(i::text::bytea), sha256('v'), 'event', i, 7, sha256('t'), i, 0, 1 FROM generate_series(1, 5000) i`)
	f := s.newFollower(claim(t, s.db, generation, 0, 1), topic)
	for range 5 {
		x.grow(20)
	}
	x.reorg(2)
	x.grow(20)
	if err := s.drive(t, f, topic); err != nil {
		t.Fatal(err)
	}
	if held := len(f.rows.resident) + len(f.rows.rows); held == 0 || held > others/10 {
		t.Errorf("%d rows are held beside %d parameters of accounts", held, others)
	}
}

// Only a word of which an audit has found another value than the fold had is a difference, and it is told once.
func TestDifferencesAreFound(t *testing.T) {
	planted, right := chain.Hash{1}, chain.Hash{2}
	w := newWorkingSet(map[perp.RowKey]perp.Row{})
	said := perp.Parameter{Key: right, Value: chain.Hash{9}, Source: perp.FromEvent, Stamp: perp.Stamp{Block: 3}}
	w.fetched([]perp.RowKey{said.RowKey(), {Table: perp.Parameters, Key: planted},
		{Table: perp.Parameters, Key: chain.Hash{3}}}, map[perp.RowKey]perp.Row{said.RowKey(): said})
	for _, p := range []perp.Parameter{
		{Key: planted, Value: chain.Hash{7}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}},
		{Key: right, Value: chain.Hash{9}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}},
		{Key: chain.Hash{3}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}}, // absent is zero
	} {
		if err := w.apply(perp.ParameterAudited{Parameter: p, Name: "VIRTUAL_TOKEN_ID(0x01)"}); err != nil {
			t.Fatal(err)
		}
	}
	found := w.differing()
	if len(found) != 1 || found[0].audited.Parameter.Key != planted || !found[0].folded.IsZero() ||
		len(w.differing()) != 0 {
		t.Fatalf("found %+v", found)
	}
	if w.Get(said.RowKey()) != perp.Row(said) {
		t.Error("a row that is right was changed")
	}
}
