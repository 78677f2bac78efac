package lease

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
)

// A holder has to be gone at two looks, a moment apart, between which nothing was written.
func TestAbsenceLasts(t *testing.T) {
	at := time.Now()
	owner := NewOwner("a").ID
	gone := Sighting{owner, 3, at}
	for name, c := range map[string]struct {
		before, now Sighting
		after       time.Duration
		lasts       bool
	}{
		"a moment later":     {gone, gone, Moment, true},
		"too soon":           {gone, gone, Moment - 1, false},
		"written meanwhile":  {gone, Sighting{owner, 3, at.Add(1)}, time.Hour, false},
		"another term of it": {gone, Sighting{owner, 4, at}, time.Hour, false},
		"another holder":     {gone, Sighting{NewOwner("b").ID, 3, at}, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			var a Absences
			if a.Lasting(signer, c.before, at) {
				t.Error("one look was enough")
			}
			if got := a.Lasting(signer, c.now, at.Add(c.after)); got != c.lasts {
				t.Errorf("lasts %t, want %t", got, c.lasts)
			}
		})
	}
}

func TestAbsenceThatHasEnded(t *testing.T) {
	var a Absences
	at := time.Now()
	gone := Sighting{NewOwner("a").ID, 3, at}
	a.Lasting(signer, gone, at)
	a.End(signer)
	a.End(chain.Address{2})
	if a.Lasting(signer, gone, at.Add(time.Hour)) {
		t.Error("it was there in between")
	}
}

// What took the looker's own session may have taken the holder's: nobody is held for gone then, for longer than a
// moment, and what was seen before does not count.
func TestAbsenceSeenByOneThatWasAwayItself(t *testing.T) {
	var a Absences
	at := time.Now()
	gone := Sighting{NewOwner("a").ID, 3, at}
	a.Lasting(signer, gone, at)
	a.Forget(at)
	for _, after := range []time.Duration{Moment, 3*Moment - 1, 3 * Moment} {
		if a.Lasting(signer, gone, at.Add(after)) {
			t.Errorf("gone after %s", after)
		}
	}
	if !a.Lasting(signer, gone, at.Add(4*Moment)) {
		t.Error("it never counts as gone again")
	}
}
