package delayed

import (
	"encoding/json"
	"time"
)

// Status is how far a job has come.
type Status string

// The statuses.
const (
	Pending Status = "pending" // to be done when due, for the first time or again
	Done    Status = "done"
	Parked  Status = "parked" // given up until an operator has looked; see the last error
)

// Job is one row. Times are the database's.
type Job struct {
	ID   int64
	Kind string
	// Key is what the work is about. A kind has one job for a key. Once it is done its row may be deleted, where nobody
	// would ask for the same again.
	Key     string
	Payload json.RawMessage
	// DueAt is when the work ought to be done, NextAt when it is tried (again): the same until an attempt has failed.
	DueAt, NextAt time.Time
	Status        Status
	// Attempts counts those that failed since the job was born or an operator took it up again; LastError is the last
	// one's.
	Attempts  int
	LastError string
	// Result is what the work came to, for people; empty until it is done.
	Result                           json.RawMessage
	Version                          int64
	CreatedAt, FinishedAt, DeletedAt time.Time // zero for never
	// ReadAt is the database's time when the row was read.
	ReadAt time.Time
}

// Appointment is a job to be stored. Its kind and key identify it.
type Appointment struct {
	Kind, Key string
	// Payload is stored as JSON; the kind reads it.
	Payload any
	DueAt   time.Time
}

// Read fills what the payload is to be read into.
func (j Job) Read(payload any) error {
	if err := json.Unmarshal(j.Payload, payload); err != nil {
		return Anomalyf("reading the payload of %s %s: %w", j.Kind, j.Key, err)
	}
	return nil
}
