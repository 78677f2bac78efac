package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// perTable registers one statement for every table of rows. In its text {table} stands for the table and {columns}, {t.columns} and {text} for its
// columns: bare, of the alias t, and of the alias t as text, which is what layout.decode reads.
func perTable(name, text string) map[perp.Table]*statement {
	all := map[perp.Table]*statement{}
	for table, l := range layouts {
		all[table] = register(name+" "+string(table), strings.NewReplacer(
			"{table}", string(table),
			"{columns}", strings.Join(l.names(""), ", "),
			"{t.columns}", strings.Join(l.names("t."), ", "),
			"{excluded.columns}", strings.Join(l.names("excluded."), ", "),
			"{text}", l.texts(),
		).Replace(text))
	}
	return all
}

var selectByKeys = perTable("rows by key of", `SELECT {text} FROM {state}.{table} t WHERE t.key = ANY ($1) AND t.part = $2 AND t.deleted_at IS NULL`)

// Rows returns those of the partition's rows that exist, with one query per table. What it says stays true while the claim lasts: nobody else writes them.
func (p *Partition) Rows(ctx context.Context, keys []perp.RowKey) (map[perp.RowKey]perp.Row, error) {
	ctx, cancel := p.db.bounded(ctx)
	defer cancel()
	byTable := map[perp.Table][][]byte{}
	for _, k := range keys {
		byTable[k.Table] = append(byTable[k.Table], k.Key[:])
	}
	found := map[perp.RowKey]perp.Row{}
	batch := &pgx.Batch{}
	for table, wanted := range byTable {
		batch.Queue(selectByKeys[table].in(p.generation), wanted, p.offset.Partition).Query(func(rows pgx.Rows) error {
			return eachRow(rows, layouts[table], func(r perp.Row) error {
				found[r.RowKey()] = r
				return nil
			})
		})
	}
	if err := p.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading rows of partition %d: %w", p.offset.Partition, err)
	}
	return found, nil
}

// eachRow decodes the result of a query over {text}.
func eachRow(rows pgx.Rows, l layout, yield func(perp.Row) error) error {
	for rows.Next() {
		r, err := l.decode(rows.RawValues())
		if err == nil {
			err = yield(r)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
