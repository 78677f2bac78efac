package txmanager

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// signing is what transactions of a lease term are signed with, and paid from.
type signing struct {
	duty
	key     signer.Signer
	chainID uint64
	market  *market
	budget  *budget
	ability *ability
}

// renewal makes further transactions at nonces that are taken: dearer ones for jobs that are still to be done, and such
// as only free the nonce of those that are not. Each is stored before it is broadcast, and which of them is mined the
// receipts say.
type renewal struct {
	signing
	broadcast *broadcast
	payments  *payments
	// recheck looks at a job anew: fresh rows, fresh reports, a simulated call.
	recheck func(ctx context.Context, t *Task) (Verdict, error)
}

// plan is what the next transaction at a nonce is to be.
type plan struct {
	kind   txm.TxKind
	call   Call
	cancel txm.Verdict
	closed bool // nothing can be sent now, whatever the job
}

// resume looks at a pending transaction that another lease term has left, or that no node has. Bytes that were
// broadcast may be anywhere: they are broadcast as they stand, unless the job is done or gone. Where no broadcast was
// noted this is as good as the first: it waits while nothing may be sent, whatever the job. What the signer cannot pay
// for makes way for what is more urgent: to free its nonce costs less.
func (r renewal) resume(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	if s.CancelsForUrgent(f) && r.broadcast.poor(f.Newest().Hash) {
		return r.renew(ctx, f, s, r.cancelForUrgent(ctx))
	}
	p, ready, err := r.plan(ctx, f)
	if err != nil {
		return err
	}
	if ready && p.kind == txm.Cancel && !f.Leaving() {
		return r.renew(ctx, f, s, p)
	}
	if p.closed && f.Newest().Sends == 0 {
		return nil
	}
	return r.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
}

// replace raises a pending transaction's price, or cancels it if its job is no longer to be done. Where that cannot be
// the newest transaction is broadcast again.
func (r renewal) replace(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	m, err := r.market.now(ctx)
	if err != nil {
		return err
	}
	newest := f.Newest()
	_, room := r.limits.Fee().Raise(s.For(f), newest.Kind, newest.Gas, newest.SignedTx, m)
	if !room && !s.CancelsForUrgent(f) && !r.limits.Fee().Due(s) {
		return nil // nothing to raise, and broadcast a moment ago
	}
	p, ready, err := r.plan(ctx, f)
	switch {
	case !ready && s.CancelsForUrgent(f):
		return r.renew(ctx, f, s, r.cancelForUrgent(ctx))
	case err != nil:
		return err
	case !ready:
		return r.repeat(ctx, f, s)
	}
	return r.renew(ctx, f, s, p)
}

// yield leaves a pending transaction to itself while its job is another keeper's: it is in the pools and may land, and
// that is all. A job that is no longer to be done gives its nonce back, and so does one that keeps jobs of ours from
// being mined.
func (r renewal) yield(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	p, ready, err := r.plan(ctx, f)
	switch {
	case err != nil:
		return err
	case ready && p.kind == txm.Cancel:
		return r.renew(ctx, f, s, p)
	case s.InTheWay:
		return r.renew(ctx, f, s,
			r.leave(ctx, txm.Cancel, txm.Verdict{Outcome: job.Withdrawn, Reason: "it is another tier's now, and " +
				"later numbers wait for this one"}))
	}
	return nil
}

// cancelNonce gives the nonce of bytes that no node takes, or that were called off, to a payment to oneself. If that is
// refused for good too, somebody has to look.
func (r renewal) cancelNonce(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	if f.Leaving() {
		reason := fmt.Sprintf("nonce %d: no node takes a payment to oneself (%s)", f.Intent.Nonce, f.Newest().Hash)
		return errors.Join(r.store.Pause(ctx, r.term.Fence(), reason), r.repeat(ctx, f, s))
	}
	why := txm.Verdict{Outcome: job.Refused, Reason: "no node takes the transaction: " + f.Newest().LastClass}
	if f.Intent.CalledOff != "" {
		why = txm.Verdict{Outcome: job.Withdrawn, Reason: f.Intent.CalledOff}
	}
	return r.renew(ctx, f, s, r.leave(ctx, txm.Cancel, why))
}

// plan decides what a pending transaction needs. It is not ready while nobody can tell: a job that is done may have
// been done by this very pending transaction, a moment ago.
func (r renewal) plan(ctx context.Context, f txm.PendingTx) (p plan, ready bool, err error) {
	if f.Leaving() {
		return r.leave(ctx, f.Newest().Kind, f.Intent.Cancel), true, nil
	}
	t := &Task{Intent: f.Intent}
	v, err := r.recheck(ctx, t)
	switch {
	case err != nil:
		return p, false, err
	case v.Kind == Drop:
		latest, err := r.node.NonceAt(ctx, f.Intent.Signer, evm.Latest)
		p = r.leave(ctx, txm.Cancel, txm.Verdict{Outcome: v.Outcome, Reason: v.Reason})
		return p, latest <= f.Intent.Nonce, err
	case v.Kind != Proceed:
		return plan{closed: v.Kind == PauseAll}, false, nil
	}
	return plan{kind: txm.Exec, call: t.Call}, true, nil
}

// cancelForUrgent gives up a job that is in the way of more urgent ones: what frees its nonce burns little, and may so
// pay more.
func (r renewal) cancelForUrgent(ctx context.Context) plan {
	return r.leave(ctx, txm.Cancel, txm.Verdict{Outcome: job.Withdrawn,
		Reason: "it cannot be mined at a price that it may pay, and more urgent transactions wait for its nonce"})
}

// leave is a payment to oneself: of 1 wei where blocks have room for payments, and else of nothing.
func (r renewal) leave(ctx context.Context, kind txm.TxKind, why txm.Verdict) plan {
	call := Call{To: r.key.Address(), Gas: txm.EmptyGas}
	if r.payments.room(ctx) {
		call.Value = 1
	}
	return plan{kind: kind, call: call, cancel: why}
}

// renew signs, stores and broadcasts, if the caps leave room.
func (r renewal) renew(ctx context.Context, f txm.PendingTx, s txm.Observation, p plan) error {
	lane, newest := s.For(f), f.Newest()
	m, err := r.market.now(ctx)
	if err != nil {
		return err
	}
	price, room := r.limits.Fee().Raise(lane, p.kind, p.call.Gas, newest.SignedTx, m)
	paid := room && r.budget.take(lane, more(p.call.Gas*price, newest.Cost()))
	if !paid && p.kind == txm.Exec && s.CancelsForUrgent(f) {
		return r.renew(ctx, f, s, r.cancelForUrgent(ctx))
	}
	if !paid {
		r.metrics.capped.WithLabelValues(string(lane)).Inc()
		if r.broadcast.atCap(newest.Hash) {
			r.log.Warn().Str("job", f.Intent.Job.ID).Uint64("nonce", f.Intent.Nonce).Uint64("gas_price", newest.Cap).
				Msg("the caps leave no room for a raise; it is broadcast as it is until it lands")
		}
		return r.repeat(ctx, f, s)
	}
	tx, err := r.sign(ctx, f.Intent.Nonce, p.call, price)
	if err != nil {
		return err
	}
	next := txm.Replacement{Intent: f.Intent.ID, After: newest.Hash, Kind: p.kind, Tx: tx, Cancel: p.cancel}
	if err := r.store.Replace(ctx, r.term.Fence(), next); err != nil {
		return err
	}
	r.metrics.replacements.WithLabelValues(string(lane), string(p.kind)).Inc()
	r.log.Info().Str("job", f.Intent.Job.ID).Uint64("nonce", tx.Nonce).Str("kind", string(p.kind)).
		Str("after", newest.Hash.Hex()).Str("hash", tx.Hash.Hex()).
		Uint64("gas_price", price).Str("reason", p.cancel.Reason).Msg("replaced")
	return r.broadcast.send(ctx, f.Intent, tx)
}

// more is by how much a new cost is above an old one.
func more(cost, before uint64) uint64 { return cost - min(cost, before) }

// repeat broadcasts the newest transaction again when it is time, and ours.
func (r renewal) repeat(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	if !r.limits.Fee().Due(s) || s.Over && !f.Leaving() {
		return nil
	}
	return r.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
}

// fill spends a number that nobody has by a payment to oneself.
func (r renewal) fill(ctx context.Context, n uint64) error {
	m, err := r.market.now(ctx)
	if err != nil {
		return err
	}
	what := r.leave(ctx, txm.Fill, txm.Verdict{}).call
	tx, err := r.sign(ctx, n, what, r.limits.Fee().First(job.MaintenanceLane, what.Gas, m))
	if err != nil {
		return err
	}
	if err := r.store.Fill(ctx, r.term.Fence(), tx); err != nil {
		return err
	}
	r.log.Warn().Uint64("nonce", n).Str("hash", tx.Hash.Hex()).Msg("filling a gap")
	return r.broadcast.send(ctx, txm.Intent{Job: job.Job{ID: "gap"}, Nonce: n}, tx)
}

// sign makes a transaction that offers one price as tip and as cap, if the lease term is not over.
func (s signing) sign(ctx context.Context, n uint64, what Call, price uint64) (txm.SignedTx, error) {
	if err := s.term.Check("sign"); err != nil {
		return txm.SignedTx{}, err
	}
	raw, hash, err := s.key.Sign(ctx, signer.Tx{ChainID: s.chainID, Nonce: n, To: what.To, Data: what.Data,
		Value: what.Value, Gas: what.Gas, Tip: price, Cap: price})
	switch {
	case err == nil:
		s.ability.note(ctx, func(a *ability) { a.signs = "" })
	case ctx.Err() == nil:
		s.ability.note(ctx, func(a *ability) { a.signs = "it does not sign: " + err.Error() })
	}
	s.market.offered(price)
	return txm.SignedTx{Nonce: n, Gas: what.Gas, Tip: price, Cap: price, Hash: hash, Raw: raw}, err
}
