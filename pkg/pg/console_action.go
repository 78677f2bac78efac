package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var (
	recordAction = Register("record console action", `INSERT INTO keeper.console_action
		(run, who, role, address, action, target, reason, stage, before, after, outcome)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`)
	listActions = Register("list console actions",
		`SELECT id, run, at, who, role, address, action, target, reason, stage, before, after, outcome
		FROM keeper.console_action WHERE ($1 = 0 OR id < $1) ORDER BY id DESC LIMIT $2`)
)

// ActionStage is how far an action of the console had come when it was written down.
type ActionStage string

// The stages. What was asked for and has no later entry was under way when the console stopped: it may have been done.
const (
	ActionAsked  ActionStage = "asked"
	ActionDone   ActionStage = "done"
	ActionFailed ActionStage = "failed"
)

// ConsoleAction is one entry of what was done by the console.
type ConsoleAction struct {
	ID            int64     // given by the database
	At            time.Time // the database's clock
	Run           uuid.UUID // the entries of one action share it
	Who           string
	Role          string
	Address       string // where the browser was
	Action        string
	Target        string
	Reason        string
	Stage         ActionStage
	Before, After map[string]string // what the action changes, before and after it; After is empty until it is done
	Outcome       string            // why it failed
}

// ConsoleActions is the record of what was done by the console. The database refuses to change or delete an entry.
type ConsoleActions struct{ db *DB }

// ConsoleActions returns the record.
func (db *DB) ConsoleActions() ConsoleActions { return ConsoleActions{db} }

// Record adds an entry.
func (s ConsoleActions) Record(ctx context.Context, a ConsoleAction) error {
	_, err := s.db.Run(ctx, fmt.Sprintf("recording %s of %s", a.Action, a.Who), recordAction.SQL(), a.Run,
		Escape(a.Who), a.Role, Escape(a.Address), Escape(a.Action), Escape(a.Target), Escape(a.Reason), a.Stage,
		escapedMap(a.Before), escapedMap(a.After), Escape(a.Outcome))
	return err
}

// List returns the newest entries with an ID below before, newest first; before 0 is no bound.
func (s ConsoleActions) List(ctx context.Context, before int64, limit int) ([]ConsoleAction, error) {
	return List(ctx, s.db, "listing what was done by the console", scanAction, listActions.SQL(), before, limit)
}

func scanAction(row pgx.CollectableRow) (a ConsoleAction, err error) {
	var before, after []byte
	if err := row.Scan(&a.ID, &a.Run, &a.At, Text(&a.Who), &a.Role, Text(&a.Address), Text(&a.Action), Text(&a.Target),
		Text(&a.Reason), &a.Stage, &before, &after, Text(&a.Outcome)); err != nil {
		return a, err
	}
	if a.Before, err = unescapedMap(before); err != nil {
		return a, err
	}
	a.After, err = unescapedMap(after)
	return a, err
}

// escapedMap makes texts storable as JSON, which PostgreSQL refuses with a NUL as well.
func escapedMap(m map[string]string) map[string]string {
	stored := map[string]string{}
	for key, value := range m {
		stored[Escape(key)] = Escape(value)
	}
	return stored
}

func unescapedMap(stored []byte) (map[string]string, error) {
	var escaped map[string]string
	if err := json.Unmarshal(stored, &escaped); err != nil {
		return nil, fmt.Errorf("reading what was before or after: %w", err)
	}
	m := map[string]string{}
	for key, value := range escaped {
		key, err := Unescape(key)
		if err != nil {
			return nil, err
		}
		if m[key], err = Unescape(value); err != nil {
			return nil, err
		}
	}
	return m, nil
}
