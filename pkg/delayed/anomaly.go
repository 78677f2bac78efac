package delayed

import (
	"errors"
	"fmt"
)

// IsAnomaly asks an error whether it says that the data are wrong: another try would find them as they are, so the job
// is parked at once (DLY-7). Any error may say so by a method Anomaly() bool.
func IsAnomaly(err error) bool {
	said, is := errors.AsType[interface {
		error
		Anomaly() bool
	}](err)
	return is && said.Anomaly()
}

type anomaly struct{ error }

// Anomaly implements what IsAnomaly asks.
func (anomaly) Anomaly() bool { return true }

func (a anomaly) Unwrap() error { return a.error }

// Anomalyf returns an error that IsAnomaly knows.
func Anomalyf(format string, args ...any) error { return anomaly{fmt.Errorf(format, args...)} }
