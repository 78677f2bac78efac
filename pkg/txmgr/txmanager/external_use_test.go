package txmanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/txmgr/nonce"
)

// The cursor is unverified for what two hosts say, and for nothing less; the chain is asked now and then, and not
// before the cursor is known.
func TestExternalUseIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		given, next uint64
		sure        bool
		err         error
		asked       int
		unverified  bool
	}{
		"not known yet":       {0, 9, true, nil, 0, false},
		"at rest":             {5, 5, true, nil, 1, false},
		"some are in flight":  {5, 3, true, nil, 1, false},
		"somebody else":       {5, 6, true, nil, 1, true},
		"one endpoint's word": {5, 6, false, nil, 1, false},
		"nobody answers":      {5, 0, false, errors.New("timeout"), 1, false},
	} {
		said := evm.MinedNonce{Newest: c.next, Agreed: c.next, Sure: c.sure}
		node, now := &minedCount{says: said, err: c.err}, time.Unix(1, 0)
		s := externalUse{cursor: new(cursor), clock: func() time.Time { return now }, duty: duty{node: node}}
		if c.given > 0 {
			s.cursor.set(nonce.Cursor{Next: c.given})
		}
		for range 3 { // at three heads within the pause
			if err := s.pass(t.Context()); err != nil && c.err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if node.asked != c.asked || s.cursor.unverified.Load() != c.unverified {
			t.Errorf("%s: asked %d times, unverified %t", name, node.asked, s.cursor.unverified.Load())
		}
		now = now.Add(externalUsePause)
		if _ = s.pass(t.Context()); node.asked != 2*c.asked {
			t.Errorf("%s: asked %d times after the pause", name, node.asked)
		}
	}
}

// An unverified cursor is read anew, and one that is lost is nothing to hold the chain against.
func TestUnverifiedCursorIsReadAnew(t *testing.T) {
	read := 0
	c := &cursor{open: func(context.Context) (nonce.Cursor, error) {
		if read++; read == 2 {
			return nonce.Cursor{}, errors.New("the database has gone back in time")
		}
		return nonce.Cursor{Next: 5}, nil
	}}
	if _, err := c.get(t.Context()); err != nil || read != 1 || c.given.Load() != 5 {
		t.Fatalf("read %d times, given %d, %v", read, c.given.Load(), err)
	}
	c.unverified.Store(true)
	if _, err := c.get(t.Context()); err == nil || c.isRead() || c.given.Load() != 0 {
		t.Errorf("read %t, given %d, %v", c.isRead(), c.given.Load(), err)
	}
	if now, err := c.get(t.Context()); err != nil || now.Next != 5 || read != 3 {
		t.Errorf("%+v after %d readings, %v", now, read, err)
	}
}
