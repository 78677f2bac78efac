package web

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/services/console/signin"
)

// An action that has used up its time stands in the record as failed, with things as they are then.
func TestWhatRanOutOfTimeIsRecorded(t *testing.T) {
	c := &console{Deps: Deps{DB: pgtest.DB(t), Log: zerolog.Nop(), Now: time.Now}}
	ctx, runOut := context.WithCancel(t.Context())
	slow := act{
		name:  "slow",
		state: func(ctx context.Context, _ string) (facts, error) { return facts{"it": "is as it was"}, ctx.Err() },
		do: func(ctx context.Context, _ signin.Session, _, _ string) error {
			runOut()
			return ctx.Err()
		},
	}
	entry := pg.ConsoleAction{Run: uuid.New(), Who: "anna", Role: "operator", Address: "127.0.0.1", Action: slow.name,
		Before: facts{"it": "is as it was"}}
	if err := c.finish(ctx, slow, signin.Session{}, entry, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it came to %v", err)
	}
	all, err := c.DB.ConsoleActions().List(t.Context(), 0, 10)
	if err != nil || len(all) != 1 || all[0].Stage != pg.ActionFailed || all[0].Outcome != "context canceled" ||
		all[0].After["it"] != "is as it was" {
		t.Errorf("the record: %+v, %v", all, err)
	}
}
