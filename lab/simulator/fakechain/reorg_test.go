package fakechain_test

import (
	"testing"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/txm"
)

// executed has an order executed by Alice in the newest block.
func (w *world) executed() (key, tx chain.Hash) {
	w.t.Helper()
	key = w.order()
	tx = w.mustSend(alice, w.execution(orderJob(key), w.nonce(alice, evm.Latest)))
	w.blocks(1)
	if r := w.receipt(tx); r == nil || !r.OK {
		w.t.Fatalf("receipt %+v", r)
	}
	return key, tx
}

func (w *world) status(d *fakechain.Derived, key chain.Hash) perp.Status {
	w.t.Helper()
	found, err := d.Order(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return found.Row.Status
}

// What becomes of an execution whose block leaves the chain.
func TestReorgs(t *testing.T) {
	for _, depth := range []uint64{1, 5, 20} {
		for _, forgotten := range []bool{false, true} {
			w := newWorld(t)
			w.HoldFinality(true)
			key, hash := w.executed()
			w.blocks(int(depth) - 1)
			before, old := w.head(), w.receipt(hash)
			d := w.Derived()
			w.at = w.at.Add(blockTime)
			if err := w.Reorg(depth, forgotten); err != nil {
				t.Fatal(err)
			}
			if left, _ := w.Path(before.Hash, w.head().Hash); len(left) != int(depth) ||
				w.head().Number != before.Number+1 {
				t.Fatalf("depth %d: left %+v, head %+v", depth, left, w.head())
			}
			if replaced, _ := w.Block(before.Number); replaced.Hash == before.Hash || replaced.TimeMs != before.TimeMs {
				t.Errorf("depth %d: block %+v for %+v", depth, replaced, before)
			}
			r := w.receipt(hash)
			if again := r != nil && r.OK && r.BlockHash != old.BlockHash; again == forgotten {
				t.Errorf("depth %d, forgotten %t: mined again: %t, %+v", depth, forgotten, again, r)
			}
			if done := w.status(d, key) == perp.Executed; done == forgotten {
				t.Errorf("depth %d, forgotten %t: the order is %s", depth, forgotten, w.status(d, key))
			}
			if n := w.nonce(alice, evm.Latest); (n == 1) == forgotten {
				t.Errorf("depth %d, forgotten %t: nonce %d", depth, forgotten, n)
			}
			if sent := w.Sent(old.BlockHash); len(sent) != 1 || sent[0].Tx.Hash != hash {
				t.Errorf("the block that was left holds %+v", sent)
			}
			if !forgotten {
				continue
			}
			// its sender sends another one at the same nonce, or the same
			w.mustSend(alice, w.execution(orderJob(key), 0))
			w.blocks(1)
			if got := w.status(d, key); got != perp.Executed {
				t.Errorf("depth %d: sent again, the order is %s", depth, got)
			}
		}
	}
}

// What an endpoint does wrong with transactions, and what it shows while it does.
func TestEndpointFaults(t *testing.T) {
	w := newWorld(t)
	w.SetFaults(fakechain.Faults{Swallow: true})
	hash := w.mustSend(alice, payment(0, txm.Gwei))
	w.mustSend(alice, payment(0, txm.Gwei))
	w.blocks(3)
	if w.receipt(hash) != nil {
		t.Error("a swallowed transaction was mined")
	}
	w.SetFaults(fakechain.Faults{Late: 35 * blockTime})
	w.mustSend(alice, payment(0, txm.Gwei))
	if _, err := w.send(alice, payment(0, txm.Gwei)); evm.SendClass(err) != evm.Accepted || err == nil {
		t.Errorf("sent once more: %v", err)
	}
	w.blocks(34)
	if w.receipt(hash) != nil {
		t.Error("a late transaction was mined early")
	}
	w.blocks(1)
	if w.receipt(hash) == nil {
		t.Error("a late transaction never came")
	}
	w.SetFaults(fakechain.Faults{Down: true})
	if _, err := w.Head(t.Context()); err == nil {
		t.Error("an endpoint that is down answers")
	}
	if _, err := w.send(alice, payment(1, txm.Gwei)); evm.SendClass(err) != evm.Ambiguous {
		t.Errorf("sent to one that is down: %v", err)
	}
	if _, err := w.Simulate(t.Context(), alice.Account, chain.Address{}, nil, 0, chain.Uint{}); err == nil {
		t.Error("one that is down rehearses")
	}
	if _, err := w.Receipt(t.Context(), hash); err == nil {
		t.Error("one that is down knows receipts")
	}
	w.SetFaults(fakechain.Faults{})
	w.blocks(2)
	if n := w.nonce(alice, evm.Latest); n != 1 {
		t.Errorf("nonce %d: something was sent through an endpoint that was down", n)
	}
	if err := w.SendPrivate(t.Context(), nil, 0); err == nil {
		t.Error("there is a builder")
	}
}
