package pg

import (
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

var (
	// upsertRows writes a partition's own rows: another partition's row of the same key is another row.
	upsertRows = perTable("upsert rows of", `INSERT INTO {state}.{table} AS r ({columns}, part, rev, deleted_at)
		SELECT {t.columns}, $2, $3, NULL FROM jsonb_populate_recordset(NULL::{state}.{table}, $1) t
		ON CONFLICT (key, part) DO UPDATE SET ({columns}, rev, deleted_at) = ROW ({excluded.columns}, excluded.rev, excluded.deleted_at)`)
	insertUndo = register("insert undo", `INSERT INTO {state}.undo (part, block, tbl, key, prior)
		SELECT $2, u.block, u.tbl, u.key, u.prior FROM jsonb_to_recordset($1) AS u (block bigint, tbl text, key bytea, prior jsonb)`)
	insertKept = register("insert kept block", `INSERT INTO {state}.kept_block (part, block, hash, parent, time_ms, attempt, verified)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`)
	pruneUndo    = register("prune undo", `DELETE FROM {state}.undo WHERE part = $1 AND block <= $2`)
	pruneKept    = register("prune kept blocks", `DELETE FROM {state}.kept_block WHERE part = $1 AND block < $2`)
	notifyChange = register("notify change", `SELECT pg_notify('state_changed', $1)`)
)

// commitBatch is all a step does to rows and journal, sent to the server in one go.
func (p *Partition) commitBatch(c Commit, next Offset) (*pgx.Batch, error) {
	batch, part := &pgx.Batch{}, next.Partition
	if len(c.Blocks) == 0 {
		return batch, nil
	}
	oldest := next.horizon()
	keep := func(b Block) {
		if b.Number >= oldest { // else it is so far behind that it would be pruned at once
			batch.Queue(insertKept.in(p.generation), part, b.Number, b.Hash[:], b.Parent[:], b.TimeMs, b.Attempt, b.Verified)
		}
	}
	if ground, exists := Ground(c.Blocks[0].Block); exists && p.offset.Tip.Hash.IsZero() {
		keep(ground)
	}
	var journal journal
	for _, b := range c.Blocks {
		keep(b.Block)
		if b.Number > oldest {
			if err := journal.add(b); err != nil {
				return nil, err
			}
		}
	}
	if journal.entries != nil {
		batch.Queue(insertUndo.in(p.generation), journal.json(), part)
	}
	if err := p.queueRows(batch, c, next.Rev); err != nil {
		return nil, err
	}
	batch.Queue(pruneUndo.in(p.generation), part, oldest)
	batch.Queue(pruneKept.in(p.generation), part, oldest)
	if next.Tip.Number/tombstoneCheckEvery != p.offset.Tip.Number/tombstoneCheckEvery {
		p.queueTombstones(batch)
	}
	return batch, nil
}

// Ground is what the very first block stands on: its parent, of which only number and hash are known. It is kept, so that the first block can be taken
// back as well. There is none under block 0.
func Ground(first Block) (ground Block, exists bool) {
	if first.Number == 0 || first.Parent.IsZero() {
		return Block{}, false
	}
	ground.Number, ground.Hash = first.Number-1, first.Parent
	return ground, true
}

// horizon is the oldest block that can be gone back to.
func (o Offset) horizon() uint64 {
	if o.Tip.Number < UndoHorizon {
		return 0
	}
	return o.Tip.Number - UndoHorizon
}

// queueRows writes each touched row once, as the last block left it.
func (p *Partition) queueRows(batch *pgx.Batch, c Commit, rev int64) error {
	last := map[perp.RowKey]perp.Row{}
	for _, b := range c.Blocks {
		for _, change := range b.Changes {
			last[change.After.RowKey()] = change.After
		}
	}
	byTable := map[perp.Table]*rowList{}
	for key, row := range last {
		list := byTable[key.Table]
		if list == nil {
			list = &rowList{}
			byTable[key.Table] = list
		}
		if err := list.add(row); err != nil {
			return err
		}
	}
	for _, table := range perp.Tables() {
		if list := byTable[table]; list != nil {
			batch.Queue(upsertRows[table].in(p.generation), list.json(), p.offset.Partition, rev)
		}
	}
	return nil
}

// rowList is rows of one table as a JSON array.
type rowList struct{ text []byte }

func (l *rowList) add(row perp.Row) (err error) {
	l.text, err = layouts[row.RowKey().Table].encode(append(l.text, ','), row)
	return err
}

func (l *rowList) json() string { return "[" + string(l.text[1:]) + "]" }

// journal is the undo rows of a step as a JSON array.
type journal struct{ entries []byte }

func (j *journal) add(b AppliedBlock) error {
	for _, change := range b.Changes {
		key := change.After.RowKey()
		j.entries = fmt.Appendf(append(j.entries, ','), `{"block":%d,"tbl":"%s","key":"\\x%x"`, b.Number, key.Table, key.Key[:])
		if change.Before != nil {
			var err error
			if j.entries, err = layouts[key.Table].encode(append(j.entries, `,"prior":`...), change.Before); err != nil {
				return err
			}
		}
		j.entries = append(j.entries, '}')
	}
	return nil
}

func (j *journal) json() json.RawMessage {
	return append(append(json.RawMessage{'['}, j.entries[1:]...), ']')
}
