package gmx

import (
	"errors"
	"strings"
)

// Two lines of the contracts are understood, v2.1 and v2.2. An exchange may change from one to the other under the same
// EventEmitter, so each event is judged by itself, by the names of its items. Items that neither line has are left
// alone: later versions append. An item that is missing is never made up, save where all of v2.2's are and the event is
// v2.1's own form.

// errBeforeV21 refuses v2.0 and older: they key requests otherwise and say neither when a position changed nor why it
// was insolvent.
var errBeforeV21 = errors.New("this is the form of contracts before v2.1, which are not supported")

// broughtByV21 names an item of each event that v2.0 did not have.
var broughtByV21 = map[string]string{
	"PositionIncrease":  "increasedAtTime",
	"PositionDecrease":  "decreasedAtTime",
	"InsolventClose":    "step",
	"OrderCreated":      "updatedAtTime",
	"OrderUpdated":      "updatedAtTime",
	"DepositCreated":    "updatedAtTime",
	"WithdrawalCreated": "updatedAtTime",
}

// drift is how the two forms of an event differ: the items that only v2.1 has and those that only v2.2 has, as
// space-separated names.
type drift struct{ v21, v22 string }

// isV21 returns the form of the event. What is of neither form is a fault that names the item.
func (r *reader) isV21(d drift) bool {
	old, oldMissing := r.count(d.v21)
	young, youngMissing := r.count(d.v22)
	switch {
	case oldMissing == "" && young == 0:
		return true
	case youngMissing == "" && old == 0:
		return false
	case old > 0 && young == 0:
		r.failf("item %q is missing, which v2.1 has", oldMissing)
	case young == 0:
		r.failf("it has neither the item %q of v2.1 nor %q of v2.2", oldMissing, youngMissing)
	case youngMissing != "":
		r.failf("item %q is missing, which v2.2 has", youngMissing)
	default:
		r.failf("it has the items %q of v2.1 beside %q of v2.2", d.v21, d.v22)
	}
	return false
}

// count returns how many of the names the event has, and the first it lacks.
func (r *reader) count(names string) (present int, missing string) {
	for name := range strings.FieldsSeq(names) {
		switch {
		case r.has(name):
			present++
		case missing == "":
			missing = name
		}
	}
	return present, missing
}
