package delayed

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// Kind is one sort of work (DLY-10).
type Kind interface {
	// Name is what rows call it; it never changes.
	Name() string
	// Do does the work of one job. What it returns is kept as JSON for people.
	Do(ctx context.Context, tx Tx, j Job) (result any, err error)
}

// Source adds rows before a scan: it turns something that happened into work to be done later. It adds the same need
// once.
type Source struct {
	Name string
	Feed func(ctx context.Context) (added int, err error)
}

// attempt does a job and judges the outcome.
func (s *Scanner) attempt(ctx context.Context, tx Tx, j Job) Ruling {
	result, err := s.do(ctx, tx, j)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(result); err == nil {
			return Ruling{Status: Done, Result: text}
		}
		err = Anomalyf("writing the result: %w", err)
	}
	r := Ruling{Status: Pending, Err: err, Again: s.cfg.pause(j.Attempts + 1)}
	if IsAnomaly(err) || j.Attempts+1 >= s.cfg.MaxAttempts {
		r.Status = Parked
	}
	return r
}

// do runs the job's kind; a panic is an error of the job and of no other.
func (s *Scanner) do(ctx context.Context, tx Tx, j Job) (result any, err error) {
	kind, known := s.kinds[j.Kind]
	if !known {
		return nil, fmt.Errorf("this build knows no delayed job of kind %q (a newer one may)", j.Kind)
	}
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panicked: %v\n%s", value, debug.Stack())
		}
	}()
	return kind.Do(ctx, tx, j)
}

// comment is a result in words.
func comment(what string) any {
	return struct {
		Came string `json:"came"`
	}{what}
}
