package keeperctl

import (
	"errors"
	"testing"
)

// A second state is begun only where every disk that can be asked has room for it.
func TestRoomForAnotherState(t *testing.T) {
	const state = 50 << 30
	for name, c := range map[string]struct {
		free    uint64
		err     error
		refused bool
	}{
		"room":                     {free: state + spared},
		"a byte too little":        {free: state + spared - 1, refused: true},
		"a disk that is not there": {err: errors.New("planted")},
	} {
		err := roomFor(state, []string{"/"}, func(string) (free, total uint64, err error) { return c.free, 0, c.err })
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
