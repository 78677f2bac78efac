package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// perTable registers one statement for every table of rows. In its text {table} stands for the table; {columns},
// {excluded.columns}, {a.columns}, {b.columns} and {selected} for its columns: bare, of an alias, and of the alias t as
// layout.decode reads them; {arrays} for the parameters from $3 on that carry a rowSet, {unnested} for its columns
// under the alias u; and {one copy} for the condition that leaves of a replicated table the copy of partition 0.
func perTable(name, text string) map[perp.Table]*Statement {
	all := map[perp.Table]*Statement{}
	for table, l := range layouts {
		all[table] = Register(name+" "+string(table), strings.NewReplacer(
			"{table}", string(table),
			"{columns}", strings.Join(l.names(""), ", "),
			"{excluded.columns}", strings.Join(l.names("excluded."), ", "),
			"{a.columns}", strings.Join(l.names("a."), ", "),
			"{b.columns}", strings.Join(l.names("b."), ", "),
			"{selected}", l.selected(),
			"{arrays}", l.arrays(3),
			"{unnested}", l.unnested(),
			"{one copy}", oneCopy(table),
		).Replace(text))
	}
	return all
}

// oneCopy is the condition under which readers of several partitions take a row.
func oneCopy(table perp.Table) string {
	if table.Replicated() {
		return "t.part = 0"
	}
	return "true"
}

var (
	selectByKeys = perTable("rows by key of",
		`SELECT {selected} FROM {state}.{table} t WHERE t.key = ANY ($1) AND t.part = $2 AND t.deleted_at IS NULL`)
	selectPart = perTable("rows of one partition of",
		`SELECT {selected} FROM {state}.{table} t WHERE t.part = $1 AND t.deleted_at IS NULL`)
)

// Rows returns those of the partition's rows that exist, with one query per table. Its answer stays true while the
// claim lasts: nobody else writes them.
func (p *Partition) Rows(ctx context.Context, keys []perp.RowKey) (map[perp.RowKey]perp.Row, error) {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	byTable := map[perp.Table][][]byte{}
	for _, k := range keys {
		byTable[k.Table] = append(byTable[k.Table], k.Key[:])
	}
	found := map[perp.RowKey]perp.Row{}
	batch := &pgx.Batch{}
	for table, wanted := range byTable {
		batch.Queue(selectByKeys[table].In(p.generation), wanted, p.offset.Partition).Query(collect(table, found))
	}
	if err := p.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading rows of partition %d: %w", p.offset.Partition, err)
	}
	return found, nil
}

// Resident returns all of the partition's rows of the tables that are held in memory (see perp.Table.Resident). What it
// says stays true as in [Partition.Rows], but for what the caller commits and undoes.
func (p *Partition) Resident(ctx context.Context) (map[perp.RowKey]perp.Row, error) {
	ctx, cancel := p.db.Bounded(ctx)
	defer cancel()
	found, batch := map[perp.RowKey]perp.Row{}, &pgx.Batch{}
	for _, table := range perp.Tables() {
		if table.Resident() {
			batch.Queue(selectPart[table].In(p.generation), p.offset.Partition).Query(collect(table, found))
		}
	}
	if err := p.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("reading the resident rows of partition %d: %w", p.offset.Partition, err)
	}
	return found, nil
}

// collect puts the rows of a query into a map.
func collect(table perp.Table, found map[perp.RowKey]perp.Row) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		return eachRow(rows, layouts[table], func(r perp.Row) error {
			found[r.RowKey()] = r
			return nil
		})
	}
}

// eachRow decodes the result of a query over {selected}.
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
