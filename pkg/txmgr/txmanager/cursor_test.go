package txmanager

import (
	"testing"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/nonce"
)

// No number comes back: of one endpoint's word, where there are several, none is left out, and none that was spent
// before is given. A signer that is known here goes on by what is stored.
func TestOneEndpointMovesNoCursor(t *testing.T) {
	o := newQueueTest(t, nil)
	node, leases := &minedCount{}, txstore.NewLeases(o.db)
	w := &worker{Parts: Parts{Node: node, Nonces: leases, Intents: o.store}, log: o.log}
	open := w.cursorOf(o.term.Fence())
	for _, c := range []struct {
		what string
		says evm.MinedNonce
		next uint64
		open bool
	}{
		{"one alone, of a new signer, too many", evm.MinedNonce{Newest: 1000}, 0, false},
		{"one alone, of a new signer, none", evm.MinedNonce{}, 0, false},
		{"two, of a new signer", evm.MinedNonce{Agreed: 7, Newest: 8, Sure: true}, 7, true},
		{"one alone, as many", evm.MinedNonce{Newest: 7}, 7, true},
		{"one alone, less", evm.MinedNonce{Newest: 3}, 7, true},
		{"one alone, more", evm.MinedNonce{Newest: 9}, 0, false},
		{"two again", evm.MinedNonce{Agreed: 7, Newest: 7, Sure: true}, 7, true},
	} {
		node.says = c.says
		got, err := open(t.Context())
		if got.Next != c.next || (err == nil) != c.open || nonce.Behind(err) {
			t.Errorf("%s: the cursor is at %d, %v", c.what, got.Next, err)
		}
	}
	if why, err := o.store.Paused(t.Context(), o.signer); err != nil || why != "" {
		t.Errorf("paused for one endpoint's word: %q, %v", why, err)
	}
}
