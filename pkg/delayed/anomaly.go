package delayed

import (
	"errors"
	"fmt"
)

// IsAnomaly reports whether an error means that the data are wrong. Another try would find them as they are, so the job
// is parked at once (DLY-7).
func IsAnomaly(err error) bool {
	_, is := errors.AsType[anomaly](err)
	return is
}

type anomaly struct{ error }

func (a anomaly) Unwrap() error { return a.error }

// Anomalyf returns an error that IsAnomaly knows.
func Anomalyf(format string, args ...any) error { return anomaly{fmt.Errorf(format, args...)} }
