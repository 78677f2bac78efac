package txmanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// laneNode answers whether an account's payment to itself is one.
type laneNode struct {
	Node
	pays  bool
	err   error
	asked int
}

func (n *laneNode) Pays(context.Context, chain.Address) (bool, error) {
	n.asked++
	return n.pays, n.err
}

// A nonce is freed by 1 wei where that is a payment, and where nobody can tell; by nothing where it is known to be
// none. What is known is asked again after a minute, so that a fork is noticed.
func TestPaymentsOfAnAccountToItself(t *testing.T) {
	node, now := &laneNode{}, time.Unix(1_796_696_990, 0)
	p := &payments{duty: duty{node: node, log: zerolog.Nop()}, clock: func() time.Time { return now }}
	for i, c := range []struct {
		after time.Duration
		pays  bool
		err   error
		room  bool
		asked int
	}{
		{0, false, errors.New("away"), true, 1},
		{time.Second, false, nil, false, 2},             // before the fork
		{time.Second, true, nil, false, 2},              // it is known
		{paymentsFresh, true, nil, true, 3},             // the fork has come
		{time.Second, false, nil, true, 3},              // it is known
		{paymentsFresh, false, nil, false, 4},           // the account has code
		{paymentsFresh, true, errors.New("x"), true, 5}, // nobody can tell
	} {
		now = now.Add(c.after)
		node.pays, node.err = c.pays, c.err
		if room := p.room(t.Context()); room != c.room || node.asked != c.asked {
			t.Errorf("question %d: room %t after %d requests, want %t after %d", i, room, node.asked, c.room, c.asked)
		}
	}
}
