package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	selectNotified = Register("notified",
		`SELECT next_offset FROM keeper.notified WHERE audience = $1 AND topic = $2 AND part = $3`)
	// It never goes back: whoever had the partition before may still be about to say how far it came.
	noteNotified = Register("note notified",
		`INSERT INTO keeper.notified AS n (audience, topic, part, next_offset) VALUES ($1, $2, $3, $4)
		ON CONFLICT (audience, topic, part) DO UPDATE SET next_offset = excluded.next_offset, updated_at =
			clock_timestamp()
			WHERE n.next_offset < excluded.next_offset`)
)

// Notified stores how far an audience was notified of a topic, so that the rest is reported after a restart.
// What was reported and not noted is reported again.
type Notified struct{ db *DB }

// Notified returns the store of how far audiences were notified.
func (db *DB) Notified() Notified { return Notified{db} }

// Next returns the offset from which on an audience is to be notified of a partition, and false if it never was.
func (n Notified) Next(ctx context.Context, audience, topic string, partition int) (next int64, known bool, err error) {
	doing := fmt.Sprintf("asking how far %s/%d was told to %s", topic, partition, audience)
	next, err = One(ctx, n.db, doing, pgx.RowTo[int64], selectNotified.SQL(), audience, topic, partition)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return next, err == nil, err
}

// Note stores that an audience has been notified of everything below an offset. It never goes back.
func (n Notified) Note(ctx context.Context, audience, topic string, partition int, next int64) error {
	doing := fmt.Sprintf("noting how far %s/%d was told to %s", topic, partition, audience)
	_, err := n.db.Run(ctx, doing, noteNotified.SQL(), audience, topic, partition, next)
	return err
}
