package delayed

import (
	"errors"
	"fmt"
)

// IsAnomaly tells whether an error means that the data are wrong. Another try would find them as they are, so the job
// is parked at once (DLY-7). Any error with a method Anomaly() bool that returns true is one.
func IsAnomaly(err error) bool {
	marked, is := errors.AsType[interface {
		error
		Anomaly() bool
	}](err)
	return is && marked.Anomaly()
}

type anomaly struct{ error }

// Anomaly implements what IsAnomaly asks.
func (anomaly) Anomaly() bool { return true }

func (a anomaly) Unwrap() error { return a.error }

// Anomalyf returns an error that IsAnomaly knows.
func Anomalyf(format string, args ...any) error { return anomaly{fmt.Errorf(format, args...)} }
