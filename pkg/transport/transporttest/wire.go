package transporttest

import (
	"testing"
	"time"
)

// Patience is within what time a wire works again, or says that it does not.
const Patience = 5 * time.Second

// Wire runs what happens to connections against a wire: each row opens one, with a relay in it, and asks over it. A
// question that fails may be asked again.
func Wire(t *testing.T, open func(t *testing.T) (relay *Relay, ask func() error)) {
	t.Helper()
	for name, row := range map[string]struct {
		fault  func(*Relay)
		fails  bool // while the fault lasts
		within time.Duration
	}{
		"the connection is forgotten": {(*Relay).Freeze, false, Patience},
		"the connection is cut":       {(*Relay).Cut, false, Patience / 2},
		"the peer is mute":            {func(r *Relay) { r.Mute(true) }, true, Patience},
		"the peer refuses":            {func(r *Relay) { r.Refuse(true) }, true, Patience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay, ask := open(t)
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			row.fault(relay)
			begun := time.Now()
			err := ask()
			if row.fails {
				if took := time.Since(begun); err == nil || took > row.within {
					t.Errorf("after %s: %v", took, err)
				}
				relay.Mute(false)
				relay.Refuse(false)
				begun = time.Now()
			}
			for err != nil && time.Since(begun) < row.within {
				err = ask()
			}
			if took := time.Since(begun); err != nil || took > row.within {
				t.Errorf("it does not work again after %s: %v", took, err)
			}
		})
	}
}
