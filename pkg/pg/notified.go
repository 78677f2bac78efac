package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	selectNotified = Register("notified",
		`SELECT next_offset, mark FROM keeper.notified WHERE audience = $1 AND topic = $2 AND part = $3`)
	// It never goes back: whoever had the partition before may still be about to say how far it came.
	noteNotified = Register("note notified",
		`INSERT INTO keeper.notified AS n (audience, topic, part, next_offset, mark) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (audience, topic, part) DO UPDATE SET next_offset = excluded.next_offset, mark = excluded.mark,
			updated_at = clock_timestamp()
			WHERE n.next_offset < excluded.next_offset`)
	beginNotified = Register("begin notified",
		`INSERT INTO keeper.notified (audience, topic, part, next_offset, mark) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (audience, topic, part) DO UPDATE SET next_offset = excluded.next_offset, mark = excluded.mark,
			updated_at = clock_timestamp()`)
)

// Notified stores how far an audience was notified of a topic, so that the rest is reported after a restart.
// What was reported and not noted is reported again.
type Notified struct{ db *DB }

// Notified returns the store of how far audiences were notified.
func (db *DB) Notified() Notified { return Notified{db} }

// Place returns from where on an audience is to be notified of a partition, and false if it never was.
func (n Notified) Place(ctx context.Context, audience, topic string, partition int) (at Place, known bool, err error) {
	doing := fmt.Sprintf("asking how far %s/%d was told to %s", topic, partition, audience)
	at, err = One(ctx, n.db, doing, func(row pgx.CollectableRow) (at Place, err error) {
		var mark []byte
		err = row.Scan(&at.Next, &mark)
		at.Mark = markOf(mark)
		return at, err
	}, selectNotified.SQL(), audience, topic, partition)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, false, nil
	}
	return at, err == nil, err
}

// Note stores that an audience has been notified of everything below a place. It never goes back.
func (n Notified) Note(ctx context.Context, audience, topic string, partition int, at Place) error {
	return n.store(ctx, noteNotified, audience, topic, partition, at)
}

// Begin stores from where on an audience is to be notified, of a topic that it was not notified of before.
func (n Notified) Begin(ctx context.Context, audience, topic string, partition int, at Place) error {
	return n.store(ctx, beginNotified, audience, topic, partition, at)
}

func (n Notified) store(ctx context.Context, how *Statement, audience, topic string, partition int, at Place) error {
	doing := fmt.Sprintf("noting how far %s/%d was told to %s", topic, partition, audience)
	_, err := n.db.Run(ctx, doing, how.SQL(), audience, topic, partition, at.Next, at.Mark.stored())
	return err
}
