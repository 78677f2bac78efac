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
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
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
	rechecks rechecks

	mu    sync.Mutex
	last  map[chain.Hash]sent // of transactions in flight
	stuck bool                // the signer's transactions do not land, see stall
}

// sent is at which heads this lease term first and last broadcast a transaction, or set out to, 0 before the first head
// came; and the class of the last answer, empty if there was none.
type sent struct {
	first, last uint64
	class       evm.Class
	pooled      bool   // a node took it, and none has refused it since in words that are understood
	refused     int    // times in a row that nodes refused it for what money does not mend
	words       string // theirs, the last time
	capped      bool   // people were told that its price cannot be raised
	hidden      int64  // the intent, if only private endpoints were given it the last time
}

// send broadcasts the bytes of a pending transaction and notes the answer. It returns an error when the lease term is
// over or the note could not be made; the broadcast may have been made all the same. What the nodes answer is never an
// error: whatever is not an acceptance leaves the transaction as it was, to be broadcast again.
func (b *broadcast) send(ctx context.Context, i txm.Intent, tx txm.SignedTx) error {
	if err := b.term.Check("broadcast"); err != nil {
		return err
	}
	b.expect(tx.Hash)
	private := b.privacy.left(i, tx)
	hidden := private > 0
	b.hide(tx.Hash, i.ID, hidden)
	answer := b.transmit(ctx, tx.Raw, private)
	class := evm.SendClass(answer)
	changed := b.answered(tx.Hash, class, evm.Words(answer))
	b.metrics.broadcasts.WithLabelValues(string(class)).Inc()
	b.log.WithLevel(level(changed, class)).Err(answer).Str("job", i.Job.ID).Uint32("attempt", i.Attempt).
		Uint64("nonce", tx.Nonce).
		Str("hash", tx.Hash.Hex()).
		Str("class", string(class)).Bool("private", hidden).
		Dur("age_ms", b.heads.Age(i.Job.DueSinceMs)).Msg("broadcast")
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
	return evm.SendClass(b.node.SendPrivate(ctx, raw, untilMs))
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
	b.rechecks.running.Wait()
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
	err := b.store.Noted(ctx, b.term.Fence(), tx.Hash, string(class), class == evm.Accepted)
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
	return b.store.Pause(ctx, b.term.Fence(), fmt.Sprintf("the signer is refused for good (nonce %d, %s): %v",
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

// answered notes an answer, and the nodes' own words if it is a refusal, and reports whether it is another one than
// before. What they say that is not understood takes no transaction back that one of them has taken: it may be another
// word for having it.
func (b *broadcast) answered(hash chain.Hash, class evm.Class, words string) (changed bool) {
	head := b.heads.Number()
	b.update(hash, func(s *sent) {
		changed, s.class = s.class != class, class
		switch class {
		case evm.Accepted:
			if s.refused > 0 {
				s.first = head
			}
			s.pooled, s.refused = true, 0
		case evm.ResolveByHash, evm.BumpToMin, evm.OtherTxAtNonce:
			s.refused = 0
		case evm.Ambiguous:
			if words != "" && !s.pooled {
				s.refused, s.words = s.refused+1, words
			}
		default:
			s.pooled, s.refused, s.words = false, s.refused+1, words
		}
	})
	return changed
}

// roomMade has what nodes took no more of broadcast again without a pause: a transaction of the signer was mined.
func (b *broadcast) roomMade() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash, s := range b.last {
		if s.full() {
			s.refused = min(s.refused, 1)
			b.last[hash] = s
		}
	}
}

// full reports whether nodes take no more of the signer's transactions.
func (s sent) full() bool { return s.class == evm.GapOrLimit || s.class == evm.SerializeSigner }

func (b *broadcast) sending(hash chain.Hash) txm.Sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ever := b.last[hash]
	return txm.Sending{Ever: ever, First: s.first, Last: s.last, Answer: s.answer(), Refused: s.refused,
		Overdue: s.hidden != 0 && b.privacy.over(s.hidden)}
}

// poor reports whether a node last said that the signer cannot pay for a transaction.
func (b *broadcast) poor(hash chain.Hash) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[hash].class == evm.PauseSigner
}

// penniless reports whether a node last said so of any transaction.
func (b *broadcast) penniless() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.last {
		if s.class == evm.PauseSigner {
			return true
		}
	}
	return false
}

// spent reports whether a node last said that a transaction's nonce is used up, perhaps by itself.
func (b *broadcast) spent(hash chain.Hash) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[hash].class == evm.ResolveByHash
}

func (s sent) answer() txm.Answer {
	switch {
	case s.class == evm.BumpToMin || s.class == evm.OtherTxAtNonce:
		return txm.TooCheap
	case s.class == evm.FatalPayload:
		return txm.Never
	case s.pooled:
		return txm.Pooled
	}
	return txm.Unpooled
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
			s.class, s.refused = "", 0
			b.last[hash] = s
		}
	}
}

// held is why nothing new may be claimed for the signer now, or empty. What is in flight is broadcast again all the
// same, and the first answer that is different ends it: a signer without means goes on by itself when it is given some,
// with the nonces it had.
func (b *broadcast) held() string {
	b.mu.Lock()
	stuck := b.stuck
	b.mu.Unlock()
	if stuck {
		return "the signer's transactions do not land"
	}
	return b.refusal()
}

// tolerated is how many refusals in a row hold nobody back, where it is not known what they mean.
const tolerated = 2

// refusal is for what nodes refuse the signer's transactions, with their own words and how often; empty if they do not.
// What is behind a nonce that no node takes could not land before it.
func (b *broadcast) refusal() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	times, poor, full, worst := 0, false, false, sent{}
	for _, s := range b.last {
		times += s.refused
		poor, full = poor || s.class == evm.PauseSigner, full || s.full()
		if s.refused > worst.refused || s.refused == worst.refused && s.words < worst.words {
			worst = s
		}
	}
	var what string
	switch {
	case poor:
		what = "the signer cannot pay for gas"
	case full:
		what = "the nodes take no more of the signer's transactions now"
	case times > tolerated:
		what = "the nodes refuse the signer's transactions, and a higher price would not help"
	default:
		return ""
	}
	return fmt.Sprintf("%s (%d times: %s)", what, times, worst.words)
}

// waiting is for how many blocks the liquidations' lane has waited for the oldest of what it has broadcast and is not
// mined, and whether nodes say that they take no more of the signer's transactions. What is another tier's for now is
// broadcast no more: that it does not land says nothing of what the chain takes.
func (b *broadcast) waiting(inFlight []txm.PendingTx, mined uint64) (blocks uint64, refused bool) {
	head, _ := b.heads.Newest()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range inFlight {
		first := b.last[f.Txs[0].Hash].first
		if f.Mined == nil && f.Intent.Nonce >= mined && first > 0 &&
			f.Intent.Job.Kind.Lane() == job.LiquidationLane && !b.abandoned(f) {
			blocks = max(blocks, head.Number-min(head.Number, first))
		}
	}
	for _, s := range b.last {
		refused = refused || s.full()
	}
	return blocks, refused
}

// stall is after how many blocks without a receipt a transaction is taken for one that does not get through: swallowed,
// or late. What would be claimed behind its nonce could not land before it; other keepers have it done meanwhile, and
// the late transaction would find nothing to do.
const stall = 12

// checkStall looks whether what is in flight lands.
func (b *broadcast) checkStall(inFlight []txm.PendingTx) {
	head, _ := b.heads.Newest()
	b.mu.Lock()
	defer b.mu.Unlock()
	late := func(a txm.Tx) bool {
		first := b.last[a.Hash].first
		return first > 0 && head.Number >= first+stall
	}
	b.stuck = b.shared && slices.ContainsFunc(inFlight,
		func(f txm.PendingTx) bool { return f.Mined == nil && slices.ContainsFunc(f.Txs, late) })
}
