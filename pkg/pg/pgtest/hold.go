package pgtest

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// Hold has generation 1, of one partition, stand at a final block that changed rows.
func Hold(tb testing.TB, db *pg.DB, block chain.BlockRef, rows ...perp.Row) {
	tb.Helper()
	applied := pg.AppliedBlock{BlockRef: block}
	for _, r := range rows {
		applied.Changes = append(applied.Changes, pg.Change{After: r})
	}
	p, err := db.Claim(tb.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	if err == nil {
		err = p.Commit(tb.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{applied}, Finalized: block})
	}
	if err != nil {
		tb.Fatal(err)
	}
}
