package sender

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// broadcast gives stored bytes to the nodes: at once after the claim, and again while they are not mined. It is shared by the road and by confirm.
type broadcast struct {
	tenure  *lease.Tenure
	node    transmitter
	horizon *horizon
	store   txm.Flights
	metrics *Metrics
	log     zerolog.Logger

	mu   sync.Mutex
	last map[chain.Hash]lastSend // of transactions in flight
	poor bool                    // the last answer was that the signer cannot pay
}

// lastSend is when this tenure last broadcast a transaction, or set out to, and the class of the last answer, empty if there was none.
type lastSend struct {
	at    time.Time
	class evm.Class
}

// transmitter gives a signed transaction to every endpoint; nil says that one has it.
type transmitter interface {
	SendRaw(ctx context.Context, raw []byte) error
}

// send broadcasts the bytes of a flight and notes the answer. It returns an error when the tenure is over or the note could not be made; the broadcast
// may have been made all the same. What the nodes answer is never an error: whatever is not an acceptance leaves the transaction as it was, to be
// broadcast again.
func (b *broadcast) send(ctx context.Context, i txm.Intent, tx txm.SignedTx) error {
	if err := b.tenure.Check("broadcast"); err != nil {
		return err
	}
	b.expect(tx.Hash)
	answer := b.node.SendRaw(ctx, tx.Raw)
	class := evm.SendClass(answer)
	news := b.answered(tx.Hash, class)
	b.metrics.broadcasts.WithLabelValues(string(class)).Inc()
	b.log.WithLevel(loud(news, class)).Err(answer).Str("job", i.Job.ID).Uint32("arm", i.Arm).Uint64("nonce", tx.Nonce).Str("hash", tx.Hash.Hex()).
		Str("class", string(class)).Dur("age_ms", b.horizon.age(i.Job.BirthMs)).Msg("broadcast")
	return errors.Join(b.note(ctx, tx, class), b.stop(ctx, tx, class, answer))
}

// loud is how loud a broadcast is logged: only news are, because the same bytes may be broadcast for a long time.
func loud(news bool, class evm.Class) zerolog.Level {
	switch {
	case !news:
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
	if txm.Refused(err) != "" {
		return nil
	}
	return err
}

// stop pauses the signer for good where trying on would only make it worse: bytes that no node will ever take block every nonce after them.
func (b *broadcast) stop(ctx context.Context, tx txm.SignedTx, class evm.Class, answer error) error {
	if class != evm.FatalPayload && class != evm.FatalSigner {
		return nil
	}
	return b.store.Pause(ctx, b.tenure.Fence(), fmt.Sprintf("nonce %d (%s) is refused for good: %v", tx.Nonce, tx.Hash, answer))
}

// expect notes that a transaction is broadcast now.
func (b *broadcast) expect(hash chain.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[hash] = lastSend{time.Now(), b.last[hash].class}
}

// answered notes an answer and tells whether it is another one than before.
func (b *broadcast) answered(hash chain.Hash, class evm.Class) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.last[hash]
	b.last[hash] = lastSend{before.at, class}
	b.poor = class == evm.PauseSigner
	return before.class != class
}

// since is how long ago this tenure broadcast a transaction; a long time if it never did.
func (b *broadcast) since(hash chain.Hash) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent, ever := b.last[hash]
	if !ever {
		return 24 * time.Hour
	}
	return time.Since(sent.at)
}

// forget drops what was remembered of transactions that are no longer in flight. An account whose last transaction is done can pay again, for all we know.
func (b *broadcast) forget(flying map[chain.Hash]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hash := range b.last {
		if !flying[hash] {
			delete(b.last, hash)
		}
	}
	b.poor = b.poor && len(flying) > 0
}

// broke tells whether the signer could not pay when last asked. Its nonces are kept and broadcast again; nothing new is claimed until one is accepted.
func (b *broadcast) broke() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.poor
}

// run is the last stage of the road.
func (b *broadcast) run(ctx context.Context, t *task) (verdict, error) {
	b.metrics.sendAge.WithLabelValues(string(t.job().Kind)).Observe(b.horizon.age(t.job().BirthMs).Seconds())
	return verdict{}, b.send(ctx, t.intent, t.tx)
}
