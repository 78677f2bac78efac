package txmanager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
)

// counted is a chain and a database of one signer: how many of its transactions are mined, by the time since the start,
// and whether any was ours.
type counted struct {
	begun   time.Time
	nonces  map[time.Duration]uint64 // from when on
	touched time.Duration            // when this keeper gave out the first nonce; 0 = never
}

func (c counted) NonceAt(context.Context, chain.Address, evm.Tag) (n uint64, err error) {
	for from, count := range c.nonces {
		if time.Since(c.begun) >= from {
			n = max(n, count)
		}
	}
	return n, nil
}

func (c counted) Untouched(context.Context, chain.Address) (bool, error) {
	return c.touched == 0 || time.Since(c.begun) < c.touched, nil
}

// Two keepers with one key: who comes second sees the other's transactions before it sends the first of its own, and
// ends.
func TestSignerInUseElsewhere(t *testing.T) {
	const span = 20 * time.Second
	for name, c := range map[string]struct {
		counted
		refused bool
	}{
		"nobody else": {counted{nonces: map[time.Duration]uint64{0: 41}}, false},
		"another keeper": {counted{nonces: map[time.Duration]uint64{0: 41, 12 * time.Second: 42}},
			true},
		"a past life's last transaction": {counted{nonces: map[time.Duration]uint64{0: 41, 2 * time.Second: 42}},
			false},
		"another copy of this sender": {counted{nonces: map[time.Duration]uint64{0: 41, 12 * time.Second: 42},
			touched: 10 * time.Second}, false},
		"a key that was never used, at all": {counted{}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.begun = time.Now()
			err := KeyWatch{Node: c.counted, Store: c.counted, Span: span}.watch(t.Context(), []chain.Address{{0xaa}})
			_, is := errors.AsType[*inUseError](err)
			if is != c.refused || !is && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if is && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "went from 41 to 42") ||
				retry.Do(t.Context(), retry.Policy{}, func(context.Context) error { return err }) == nil) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
