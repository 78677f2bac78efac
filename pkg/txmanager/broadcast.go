package txmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// broadcast gives stored bytes to the nodes: at once after the claim, and again while they are not mined. It is shared
// by claims and by confirm.
type broadcast struct {
	duty

	privacy privacy        // what the public nodes are not given yet
	private sync.WaitGroup // what is being said to private endpoints

	// shared is true when other keepers may execute what this one does not.
	shared bool

	launches launches

	mu    sync.Mutex
	last  map[chain.Hash]sent // of transactions in flight
	stuck bool                // the signer's transactions do not land, see stall
}

// sent is at which heads this tenure first and last broadcast a transaction, or set out to, 0 before the first head
// came; and the class of the last answer, empty if there was none.
type sent struct {
	first, last uint64
	class       evm.Class
	capped      bool  // people were told that its price cannot be raised
	hidden      int64 // the intent, if only private endpoints were given it the last time
}

// send broadcasts the bytes of a flight and notes the answer. It returns an error when the tenure is over or the note
// could not be made; the broadcast may have been made all the same. What the nodes answer is never an error: whatever
// is not an acceptance leaves the transaction as it was, to be broadcast again.
func (b *broadcast) send(ctx context.Context, i txm.Intent, tx txm.SignedTx) error {
	if err := b.tenure.Check("broadcast"); err != nil {
		return err
	}
	b.expect(tx.Hash)
	private := b.privacy.left(i, tx)
	hidden := private > 0
	b.hide(tx.Hash, i.ID, hidden)
	failpoint.Hit("sender.send.before")
	answer := b.transmit(ctx, tx.Raw, private)
	failpoint.Hit("sender.reply.before")
	class := evm.SendClass(answer)
	changed := b.answered(tx.Hash, class)
	b.metrics.broadcasts.WithLabelValues(string(class)).Inc()
	b.log.WithLevel(level(changed, class)).Err(answer).Str("job", i.Job.ID).Uint32("attempt", i.Attempt).
		Uint64("nonce", tx.Nonce).
		Str("hash", tx.Hash.Hex()).
		Str("class", string(class)).Bool("private", hidden).Dur("age_ms", b.heads.Age(i.Job.BirthMs)).Msg("broadcast")
	return errors.Join(b.note(ctx, tx, class), b.stop(ctx, tx, class, answer))
}

// transmit gives bytes to all endpoints, private ones included, or to these alone for some time. What private endpoints
// answer decides nothing: they promise nothing, and refuse for reasons of their own.
func (b *broadcast) transmit(ctx context.Context, raw []byte, private time.Duration) error {
	if private > 0 {
		until := b.heads.Time()
		if until > 0 { // before the first head the builder's own bound has to do
			until += uint64(private.Milliseconds())
		}
		if answer := b.relay(ctx, raw, until); answer != evm.Accepted {
			return fmt.Errorf("no private endpoint has taken it (%s)", answer) // which says nothing of the transaction
		}
		return nil
	}
	if b.privacy.cfg.Endpoints {
		b.private.Go(func() { b.relay(ctx, raw, 0) })
	}
	return b.node.SendRaw(ctx, raw)
}

// relay gives bytes to private endpoints, whose bundles end at untilMs; see [Node].
func (b *broadcast) relay(ctx context.Context, raw []byte, untilMs uint64) evm.Class {
	class := evm.SendClass(b.node.SendPrivate(ctx, raw, untilMs))
	b.metrics.privates.WithLabelValues(string(class)).Inc()
	return class
}

// hide notes whether the public nodes are not given a transaction of an intent.
func (b *broadcast) hide(hash chain.Hash, intent int64, hidden bool) {
	b.update(hash, func(s *sent) {
		if s.hidden = 0; hidden {
			s.hidden = intent
		}
	})
}

func (b *broadcast) update(hash chain.Hash, change func(*sent)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.last[hash]
	change(&s)
	b.last[hash] = s
}

// close waits for what is still being sent to nodes, public and private.
func (b *broadcast) close() {
	b.launches.running.Wait()
	b.private.Wait()
}

// level is how loud a broadcast is logged: only news are, because the same bytes may be broadcast for a long time.
func level(changed bool, class evm.Class) zerolog.Level {
	switch {
	case !changed:
		return zerolog.DebugLevel
	case class == evm.Accepted:
		return zerolog.InfoLevel
	default:
		return zerolog.WarnLevel
	}
}

// note stores the answer. An intent that has moved on meanwhile, because confirm was faster, needs no note.
func (b *broadcast) note(ctx context.Context, tx txm.SignedTx, class evm.Class) error {
	err := b.store.Noted(ctx, b.tenure.Fence(), tx.Hash, string(class), class == evm.Accepted)
	failpoint.Hit("sender.reply.after")
	if txm.Refused(err) != "" {
		return nil
	}
	return err
}

// stop pauses the signer for good where trying on would only make it worse. Bytes that no node takes are replaced; see
// renewal.
func (b *broadcast) stop(ctx context.Context, tx txm.SignedTx, class evm.Class, answer error) error {
	if class != evm.FatalSigner {
		return nil
	}
	return b.store.Pause(ctx, b.tenure.Fence(), fmt.Sprintf("the signer is refused for good (nonce %d, %s): %v",
		tx.Nonce, tx.Hash, answer))
}

func (b *broadcast) expect(hash chain.Hash) {
	head := b.heads.Number()
	b.update(hash, func(s *sent) { s.first, s.last = cmp.Or(s.first, head), head })
}

// atCap notes that a transaction's price cannot be raised, and reports whether that is news.
func (b *broadcast) atCap(hash chain.Hash) (changed bool) {
	b.update(hash, func(s *sent) { changed, s.capped = !s.capped, true })
	return changed
}

// restart forgets when a transaction was first broadcast: it was mined since, and is as good as new.
func (b *broadcast) restart(hash chain.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, hash)
}

// answered notes an answer and reports whether it is another one than before.
func (b *broadcast) answered(hash chain.Hash, class evm.Class) (changed bool) {
	b.update(hash, func(s *sent) { changed, s.class = s.class != class, class })
	return changed
}

func (b *broadcast) sending(hash chain.Hash) txm.Sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ever := b.last[hash]
	return txm.Sending{Ever: ever, First: s.first, Last: s.last, Answer: answerOf(s.class),
		Overdue: s.hidden != 0 && b.privacy.over(s.hidden)}
}

// spent reports whether a node last said that a transaction's nonce is used up, perhaps by itself.
func (b *broadcast) spent(hash chain.Hash) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[hash].class == evm.ResolveByHash
}

func answerOf(c evm.Class) txm.Answer {
	switch c { //nolint:exhaustive // every other class leaves the transaction as it is
	case evm.BumpToMin, evm.OtherTxAtNonce:
		return txm.TooCheap
	case evm.PauseSigner:
		return txm.Unpaid
	case evm.FatalPayload:
		return txm.Never
	}
	return txm.Unclear
}

// forget drops what was remembered of transactions that are no longer in flight, and what was answered to those that
// are not broadcast any more, being mined, replaced or another tier's: no other answer would come that could end what
// it held back.
func (b *broadcast) forget(flying map[chain.Hash]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash, s := range b.last {
		pressed, flies := flying[hash]
		switch {
		case !flies:
			delete(b.last, hash)
		case !pressed:
			s.class = ""
			b.last[hash] = s
		}
	}
}

// held is why nothing new may be claimed for the signer now, or empty. What is in flight is broadcast again all the
// same, and the first answer that is different ends it: a signer without means goes on by itself when it is given some,
// with the nonces it had.
func (b *broadcast) held() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stuck {
		return "the signer's transactions do not land"
	}
	reason := ""
	for _, s := range b.last {
		switch s.class { //nolint:exhaustive // every other class holds nobody back
		case evm.PauseSigner:
			return "the signer cannot pay for gas"
		case evm.GapOrLimit, evm.SerializeSigner:
			reason = "the nodes take no more of the signer's transactions now"
		}
	}
	return reason
}

// waiting is for how many blocks the liquidations' lane has waited for the oldest of what it has broadcast and is not
// mined, and whether nodes say that they take no more of the signer's transactions. What is another tier's for now is
// broadcast no more: that it does not land says nothing of what the chain takes.
func (b *broadcast) waiting(flights []txm.Flight, mined uint64) (blocks uint64, refused bool) {
	head, _ := b.heads.Newest()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range flights {
		first := b.last[f.Txs[0].Hash].first
		if f.Mined == nil && f.Intent.Nonce >= mined && first > 0 &&
			f.Intent.Job.Kind.Lane() == job.LiquidationLane && !b.abandoned(f) {
			blocks = max(blocks, head.Number-min(head.Number, first))
		}
	}
	for _, s := range b.last {
		refused = refused || s.class == evm.GapOrLimit || s.class == evm.SerializeSigner
	}
	return blocks, refused
}

// stall is after how many blocks without a receipt a transaction is taken for one that does not get through: swallowed,
// or late. What would be claimed behind its nonce could not land before it; other keepers have it done meanwhile, and
// the late transaction would find nothing to do.
const stall = 12

// checkStall looks whether what is in flight lands.
func (b *broadcast) checkStall(flights []txm.Flight) {
	head, _ := b.heads.Newest()
	b.mu.Lock()
	defer b.mu.Unlock()
	late := func(a txm.Tx) bool {
		first := b.last[a.Hash].first
		return first > 0 && head.Number >= first+stall
	}
	b.stuck = b.shared && slices.ContainsFunc(flights,
		func(f txm.Flight) bool { return f.Mined == nil && slices.ContainsFunc(f.Txs, late) })
}
