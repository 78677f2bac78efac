package sender

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// mortal kills a sender process at a labelled moment: from then on whatever it still tries does nothing at all, as
// after a kill -9. Nothing is released, nothing is finished.
type mortal struct {
	at string // the moment, such as "before claim"

	mu   sync.Mutex
	dead bool
	died chan struct{}
	sent [][]byte // what the process broadcast while it lived
}

func newMortal(at string) *mortal { return &mortal{at: at, died: make(chan struct{})} }

// await waits for the moment.
func (m *mortal) await(t *testing.T) {
	t.Helper()
	guard := time.NewTimer(hangGuard)
	defer guard.Stop()
	select {
	case <-m.died:
	case <-guard.C:
		t.Fatalf("the moment never came: %s", m.at)
	}
}

var errDead = errors.New("this process is dead")

// reach is the moment itself.
func (m *mortal) reach(label string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dead && label == m.at {
		m.dead = true
		close(m.died)
	}
	if m.dead {
		return errDead
	}
	return nil
}

// around does something unless the process is dead, with a moment before and one after it.
func (m *mortal) around(what string, do func() error) error {
	if err := m.reach("before " + what); err != nil {
		return err
	}
	err := do()
	if dead := m.reach("after " + what); dead != nil {
		return dead
	}
	return err
}

// inhabit puts the mortal between a sender and the world.
func (m *mortal) inhabit(s *Sender) {
	for i, key := range s.keys {
		s.keys[i] = mortalSigner{key, m}
	}
	s.intents = mortalIntents{s.intents, m}
	s.leases, s.nonces = mortalLeases{s.leases, m}, mortalNonces{s.nonces, m}
	s.node = mortalNode{s.node, m}
}

type mortalSigner struct {
	signer.Signer
	m *mortal
}

func (s mortalSigner) Sign(ctx context.Context, tx signer.Tx) (raw []byte, hash chain.Hash, err error) {
	err = s.m.around("sign", func() error {
		raw, hash, err = s.Signer.Sign(ctx, tx)
		return err
	})
	return raw, hash, err
}

type mortalNode struct {
	node
	m *mortal
}

func (n mortalNode) SendRaw(ctx context.Context, raw []byte) error {
	return n.m.around("send", func() error {
		n.m.mu.Lock()
		n.m.sent = append(n.m.sent, raw)
		n.m.mu.Unlock()
		return n.node.SendRaw(ctx, raw)
	})
}

func (n mortalNode) Receipt(ctx context.Context, tx chain.Hash) (r *evm.Receipt, err error) {
	r, err = n.node.Receipt(ctx, tx)
	if r != nil {
		if dead := n.m.reach("seeing the receipt"); dead != nil {
			return nil, dead
		}
	}
	return r, err
}

type mortalLeases struct {
	leases
	m *mortal
}

func (l mortalLeases) Acquire(ctx context.Context, s chain.Address, o lease.Owner, ttl time.Duration) (f lease.Fence,
	err error) {
	err = l.m.around("acquire", func() error {
		f, err = l.leases.Acquire(ctx, s, o, ttl)
		return err
	})
	return f, err
}

func (l mortalLeases) Renew(ctx context.Context, f lease.Fence, ttl time.Duration) error {
	return l.m.around("renew", func() error { return l.leases.Renew(ctx, f, ttl) })
}

func (l mortalLeases) Release(ctx context.Context, f lease.Fence) error {
	return l.m.around("release", func() error { return l.leases.Release(ctx, f) })
}

type mortalNonces struct {
	nonce.Store
	m *mortal
}

func (n mortalNonces) TakeOver(ctx context.Context, f lease.Fence, latest uint64) (c nonce.Cursor, err error) {
	err = n.m.around("take over", func() error {
		c, err = n.Store.TakeOver(ctx, f, latest)
		return err
	})
	return c, err
}

type mortalIntents struct {
	txm.Store
	m *mortal
}

func (i mortalIntents) Enqueue(ctx context.Context, j job.Job) (a txm.Admission, err error) {
	err = i.m.around("enqueue", func() error {
		a, err = i.Store.Enqueue(ctx, j)
		return err
	})
	return a, err
}

func (i mortalIntents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	return i.m.around("claim", func() error { return i.Store.Claim(ctx, f, b) })
}

func (i mortalIntents) Noted(ctx context.Context, f lease.Fence, hash chain.Hash, class string, accepted bool) error {
	return i.m.around("note", func() error { return i.Store.Noted(ctx, f, hash, class, accepted) })
}

func (i mortalIntents) Record(ctx context.Context, f lease.Fence, receipts ...txm.Receipt) error {
	return i.m.around("record", func() error { return i.Store.Record(ctx, f, receipts...) })
}

func (i mortalIntents) Unmine(ctx context.Context, f lease.Fence, r txm.Receipt) error {
	return i.m.around("unmine", func() error { return i.Store.Unmine(ctx, f, r) })
}

func (i mortalIntents) Finish(ctx context.Context, f lease.Fence, finals ...txm.FinalReceipt) error {
	return i.m.around("finish", func() error { return i.Store.Finish(ctx, f, finals...) })
}

func (i mortalIntents) Skip(ctx context.Context, f lease.Fence, intent int64, e txm.Ending) error {
	return i.m.around("skip", func() error { return i.Store.Skip(ctx, f, intent, e) })
}

func (i mortalIntents) NonceLost(ctx context.Context, f lease.Fence, intent int64, e txm.Ending) error {
	return i.m.around("nonce_lost", func() error { return i.Store.NonceLost(ctx, f, intent, e) })
}

func (i mortalIntents) Pause(ctx context.Context, f lease.Fence, reason string) error {
	return i.m.around("pause", func() error { return i.Store.Pause(ctx, f, reason) })
}

func (i mortalIntents) Replace(ctx context.Context, f lease.Fence, r txm.Replacement) error {
	return i.m.around("replace", func() error { return i.Store.Replace(ctx, f, r) })
}

func (i mortalIntents) Fill(ctx context.Context, f lease.Fence, tx txm.SignedTx) error {
	return i.m.around("fill", func() error { return i.Store.Fill(ctx, f, tx) })
}

func (i mortalIntents) Reported(ctx context.Context, f lease.Fence, ids []int64) error {
	return i.m.around("report", func() error { return i.Store.Reported(ctx, f, ids) })
}
