package delayed_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/delayed/delayedtest"
)

// memory is a store in a list, for virtual time. It passes the suite of the real one.
type memoryStore struct {
	mu     sync.Mutex
	rows   []delayed.Job
	busy   map[int64]bool
	down   error // what it answers when it is away
	ledger map[string]chain.Uint
	open   map[chain.Hash]bool
}

func newMemoryStore() *memoryStore {
	return &memoryStore{busy: map[int64]bool{}, ledger: map[string]chain.Uint{}, open: map[chain.Hash]bool{}}
}

// round keeps what a database keeps of a time.
func round(at time.Time) time.Time { return at.Round(time.Microsecond) }

func (m *memoryStore) Add(_ context.Context, appointments ...delayed.Appointment) (added int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range appointments {
		if slices.ContainsFunc(m.rows, func(j delayed.Job) bool { return j.Kind == a.Kind && j.Key == a.Key }) {
			continue
		}
		payload, err := json.Marshal(a.Payload)
		if err != nil {
			return added, err
		}
		added++
		m.rows = append(m.rows, delayed.Job{
			ID: int64(len(m.rows) + 1), Kind: a.Kind, Key: a.Key, Payload: payload, DueAt: round(a.DueAt),
			NextAt: round(a.DueAt), Status: delayed.Pending,
			Version: 1, CreatedAt: time.Now(),
		})
	}
	return added, nil
}

func due(j delayed.Job, until time.Time) bool {
	return j.Status == delayed.Pending && j.DeletedAt.IsZero() && !j.NextAt.After(until)
}

func (m *memoryStore) Due(_ context.Context, until time.Time, after delayed.Place, limit int) (page delayed.Page,
	err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return page, m.down
	}
	if page.Until = until; until.IsZero() {
		page.Until = round(time.Now())
	}
	for _, j := range m.rows {
		if c := cmp.Or(j.NextAt.Compare(after.NextAt), cmp.Compare(j.ID, after.ID)); c > 0 && due(j, page.Until) {
			page.Rows = append(page.Rows, delayed.Place{NextAt: j.NextAt, ID: j.ID, Version: j.Version})
		}
	}
	slices.SortFunc(page.Rows,
		func(a, b delayed.Place) int { return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.ID, b.ID)) })
	page.Rows = page.Rows[:min(limit, len(page.Rows))]
	return page, nil
}

func (m *memoryStore) lock(row delayed.Place) (delayed.Job, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.rows[row.ID-1]
	if m.down != nil || m.busy[row.ID] || j.Version != row.Version || !due(j, time.Now()) {
		return j, false, m.down
	}
	m.busy[row.ID] = true
	j.ReadAt = time.Now()
	return j, true, nil
}

func (m *memoryStore) Work(ctx context.Context, row delayed.Place,
	do func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling) (bool, error) {
	j, taken, err := m.lock(row)
	if !taken {
		return false, err
	}
	tx := &memoryTx{memoryStore: m}
	r := do(ctx, tx, j)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[row.ID] = false
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	j.Version++
	j.Status = r.Status
	if r.Err == nil {
		for agent, wei := range tx.released {
			m.ledger[agent] = m.ledger[agent].Sub(wei)
		}
		j.Result = r.Result
	} else {
		j.Attempts++
		j.LastError, j.NextAt = r.Err.Error(), time.Now().Add(r.Again)
	}
	if r.Status != delayed.Pending {
		j.FinishedAt = time.Now()
	}
	m.rows[row.ID-1] = j
	return true, nil
}

func (m *memoryStore) Close(context.Context, string, delayed.Summary) (delayed.Outlook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := delayed.Outlook{Next: -1, Parked: map[string]int{}}
	for _, j := range m.rows {
		switch {
		case j.Status == delayed.Parked:
			o.Parked[j.Kind]++
		case j.Status == delayed.Pending && j.DeletedAt.IsZero():
			next := time.Until(j.NextAt)
			o.Late = max(o.Late, -next)
			if next = max(next, 0); o.Next < 0 || next < o.Next {
				o.Next = next
			}
		}
	}
	return o, m.down
}

func (m *memoryStore) operate(id int64, change func(*delayed.Job)) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := &m.rows[id-1]
	if j.Status == delayed.Done || !j.DeletedAt.IsZero() {
		return false, nil
	}
	j.Version++
	change(j)
	return true, nil
}

func (m *memoryStore) jobs(*testing.T) []delayed.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows)
}

// memoryTx is what kinds work with.
type memoryTx struct {
	*memoryStore
	released map[string]chain.Uint
}

func (t *memoryTx) Release(_ context.Context, agent string, amount chain.Uint, _ string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ledger[agent].Less(amount) {
		return delayed.Anomalyf("only %s wei are frozen", t.ledger[agent])
	}
	t.released = map[string]chain.Uint{agent: amount}
	return nil
}

func (t *memoryTx) Waiting(_ context.Context, key chain.Hash) (bool, error) { return t.open[key], nil }

func (t *memoryTx) Day(_ context.Context, day time.Time) (delayed.Day, error) {
	if day.Year() < 2000 {
		return delayed.Day{}, errors.New("no book reaches so far back")
	}
	return delayed.Day{Day: day.Format(time.DateOnly)}, nil
}

func TestMemoryConforms(t *testing.T) {
	delayedtest.Run(t, func(*testing.T) delayedtest.Fixture {
		m := newMemoryStore()
		return delayedtest.Fixture{
			Store: m, Add: m.Add, Jobs: m.jobs,
			Cancel: func(_ context.Context, id int64) (bool, error) {
				return m.operate(id, func(j *delayed.Job) { j.DeletedAt = time.Now() })
			},
			Retry: func(_ context.Context, id int64) (bool, error) {
				return m.operate(id, func(j *delayed.Job) {
					j.Status, j.Attempts, j.NextAt, j.FinishedAt = delayed.Pending, 0,
						round(time.Now().Add(-time.Microsecond)), time.Time{}
				})
			},
		}
	})
}
