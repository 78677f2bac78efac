package pg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusal is an error that another try cannot mend.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Refuse marks an error for which [Refused] is to be true.
func Refuse(err error) error { return refusal{err} }

// Refusef makes an error for which [Refused] is true.
func Refusef(format string, args ...any) error { return Refuse(fmt.Errorf(format, args...)) }

// Unfit tells whether an error says that a value can be stored in no row, whatever else is true: it is the value that
// is wrong, and not the database.
func Unfit(err error) bool {
	const dataException, checkViolation = "22", "23514"
	answer, is := errors.AsType[*pgconn.PgError](err)
	return is && (strings.HasPrefix(answer.Code, dataException) || answer.Code == checkViolation)
}

// Refused tells whether an error says that the database, or this package on its behalf, understood a write and cannot
// accept it: a value that does not fit, a block that does not follow. Trying again is pointless; whoever wrote the
// request has to look.
func Refused(err error) bool {
	if _, is := errors.AsType[refusal](err); is {
		return true
	}
	answer, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return false
	}
	const dataException, integrityViolation, wrongStatement = "22", "23", "42"
	for _, class := range []string{dataException, integrityViolation, wrongStatement} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return false
}
