package pg_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// Whatever is written into the console's record is read back as it was.
func TestConsoleActionsComeBack(t *testing.T) {
	db := pgtest.DB(t)
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
		func(raw []byte) string { return string(raw) }))
	rapid.Check(t, func(rt *rapid.T) {
		want := pg.ConsoleAction{Run: uuid.New(), Who: text.Draw(rt, "who"), Role: "operator", Address: "::1",
			Action: "signer pause", Target: text.Draw(rt, "target"), Reason: text.Draw(rt, "reason"),
			Stage: pg.ActionDone, Before: rapid.MapOf(text, text).Draw(rt, "before"),
			After: rapid.MapOf(text, text).Draw(rt, "after"), Outcome: text.Draw(rt, "outcome")}
		if err := db.ConsoleActions().Record(t.Context(), want); err != nil {
			rt.Fatal(err)
		}
		all, err := db.ConsoleActions().List(t.Context(), 0, 1)
		if err != nil || len(all) != 1 {
			rt.Fatal(all, err)
		}
		got := all[0]
		if got.Run != want.Run || got.Who != want.Who || got.Target != want.Target || got.Reason != want.Reason ||
			got.Outcome != want.Outcome || !maps.Equal(got.Before, want.Before) || !maps.Equal(got.After, want.After) {
			rt.Fatalf("%+v came back as %+v", want, got)
		}
	})
}

// Nobody changes what was written, not even the owner of the table.
func TestConsoleActionsAreAppendOnly(t *testing.T) {
	address := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `INSERT INTO keeper.console_action (run, who, role, address, action, target,
		reason, stage, before, after, outcome) VALUES (gen_random_uuid(), 'ann', 'admin', '', 'a', 't', '', 'asked',
		'{}', '{}', '')`); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"UPDATE keeper.console_action SET who = 'eve'", "DELETE FROM keeper.console_action",
		"TRUNCATE keeper.console_action"} {
		if _, err := conn.Exec(t.Context(), change); err == nil || !strings.Contains(err.Error(), "append") &&
			!strings.Contains(err.Error(), "another entry") {
			t.Errorf("%s: %v", change, err)
		}
	}
}
