package txstore_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// ground is the block that tests begin above.
var ground = chain.BlockRef{Number: 999, Hash: chain.Hash{9}}

// follow is a block above another one, with new rows.
func follow(parent chain.BlockRef, rows ...perp.Row) pg.AppliedBlock {
	ref := chain.BlockRef{Number: parent.Number + 1, Hash: chain.Keccak256(parent.Hash[:]), Parent: parent.Hash}
	b := pg.AppliedBlock{BlockRef: ref}
	for _, r := range rows {
		b.Changes = append(b.Changes, pg.Change{After: r})
	}
	return b
}

// query asks one question past the package.
func query[T any](t *testing.T, url, sql string, args ...any) (answer T) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// execute runs SQL past the package, as an operator with psql would.
func execute(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
