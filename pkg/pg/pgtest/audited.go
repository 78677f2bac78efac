package pgtest

import (
	"context"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// WithAudits returns rows that were folded from logs together with how far the database says that the words of their
// markets have been audited, which no log says. The rows themselves stay as they are: an audit may be taken back with
// its block.
func WithAudits(ctx context.Context, db *pg.DB, folded RowSource) (RowSource, error) {
	a := audited{RowSource: folded}
	for _, row := range folded.Rows(perp.Markets) {
		audit, err := db.MarketValue(ctx, perp.AuditKey(row.RowKey().Key.Address()).Key)
		if err != nil {
			return nil, err
		}
		if audit.Known {
			a.audits = append(a.audits, audit.Row)
		}
	}
	return a, nil
}

// audited is rows and audits beside them.
type audited struct {
	RowSource
	audits []perp.Row
}

// Rows implements [RowSource].
func (a audited) Rows(t perp.Table) []perp.Row {
	rows := a.RowSource.Rows(t)
	if t == perp.MarketValues {
		rows = append(rows, a.audits...)
	}
	return rows
}
