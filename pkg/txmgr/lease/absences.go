package lease

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
)

// Moment is for how long a holder's session has to be gone before the lease may pass on: a holder that lives opens
// another one within it.
const Moment = time.Second

// Sighting is a lease whose holder's session is gone, as one look at the store shows it.
type Sighting struct {
	Owner uuid.UUID
	Token int64
	// Written is when the lease was last written, by the store's clock. A holder that lives writes it.
	Written time.Time
}

// Absences remember since when holders have been seen gone. The zero value has seen nobody. It is safe for concurrent
// use.
type Absences struct {
	mu   sync.Mutex
	gone map[chain.Address]absence
	// blind is until when nobody is held for gone: see Forget.
	blind time.Time
}

type absence struct {
	Sighting
	since time.Time
}

// Lasting takes in a look by which a holder is gone, and reports whether it has been, with nothing written meanwhile,
// for a [Moment]: by this look and an earlier one.
func (a *Absences) Lasting(signer chain.Address, s Sighting, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.blind) {
		return false
	}
	if a.gone == nil {
		a.gone = map[chain.Address]absence{}
	}
	before, known := a.gone[signer]
	if !known || before.Owner != s.Owner || before.Token != s.Token || !before.Written.Equal(s.Written) {
		a.gone[signer] = absence{s, now}
		return false
	}
	return now.Sub(before.since) >= Moment
}

// End takes in a look by which the holder is there, or nobody is.
func (a *Absences) End(signer chain.Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.gone, signer)
}

// Forget takes in that the looker's own session was lost: what took it may have taken the holders'. They get longer to
// come back.
func (a *Absences) Forget(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone, a.blind = nil, now.Add(3*Moment)
}
