package txmtest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

// The hammer: several sender processes fight for one signer. They are paused past the end of their leases, answers of
// their claims are lost before or after the commit, and a paused one broadcasts what it signed whenever it wakes.
const (
	hammerNodes = 4
	hammerTTL   = 80 * time.Millisecond
)

// hammerJobs is how many jobs are fought for: some dozen seconds' worth, or, with KEEPER_LONG set, minutes'.
func hammerJobs() int {
	if os.Getenv("KEEPER_LONG") == "" {
		return 120
	}
	return 10_000
}

// hammerJob is the i-th of them.
func hammerJob(signer chain.Address, i int) job.Job {
	j := anOrder(signer, 1)
	binary.BigEndian.PutUint32(j.Key[28:], uint32(i))
	j.ID, j.Account = job.OrderID(j.Key, 1), chain.Address(j.Key[12:])
	return j
}

// ledger is a chain with one account: it takes the transactions of the account in the order of their numbers, whoever
// sends them, each number once.
type ledger struct {
	mu    sync.Mutex
	pool  map[uint64]chain.Hash // the first one seen at a number stays
	mined []chain.Hash
}

func (l *ledger) broadcast(tx txm.SignedTx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.pool[tx.Nonce]; !known {
		l.pool[tx.Nonce] = tx.Hash
	}
	for {
		hash, ready := l.pool[uint64(len(l.mined))]
		if !ready {
			return
		}
		l.mined = append(l.mined, hash)
	}
}

// latest is the account's next number.
func (l *ledger) latest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.mined))
}

func (l *ledger) has(hash chain.Hash, n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n < uint64(len(l.mined)) && l.mined[n] == hash
}

// NON-14: no number twice, no job twice, and all jobs in the end.
func hammer(b *bench) {
	signer := b.signer()
	jobOf := map[int64]string{}
	for i := range hammerJobs() {
		if a, err := b.Intents.Enqueue(b.Context(), hammerJob(signer, i)); err != nil || a != txm.NewAttempt {
			b.Fatal(a, err)
		}
	}
	queued, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Limit: hammerJobs()})
	if err != nil {
		b.Fatal(err)
	}
	for _, i := range queued {
		jobOf[i.ID] = i.Job.ID
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	ring := &ring{bench: b, signer: signer, ledger: &ledger{pool: map[uint64]chain.Hash{}},
		signed: map[chain.Hash]int64{}}
	var group sync.WaitGroup
	for seed := range uint64(hammerNodes) {
		group.Go(func() {
			ring.fight(ctx, rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // a test that can be repeated
		})
	}
	group.Wait()
	ring.judge(jobOf)
}

// ring is where the nodes meet.
type ring struct {
	*bench
	signer chain.Address
	ledger *ledger

	mu     sync.Mutex
	signed map[chain.Hash]int64 // which intent a transaction is for
	fenced int
}

// fight is the life of one process: it owns the signer again and again until nothing is left to do.
func (r *ring) fight(ctx context.Context, rnd *rand.Rand) {
	owner := lease.NewOwner("node")
	for ctx.Err() == nil && !r.done(ctx) {
		fence, err := r.Leases.Acquire(ctx, r.signer, owner, hammerTTL)
		if err == nil {
			err = r.serve(ctx, fence, rnd)
		}
		switch {
		case lease.Lost(err):
			r.mu.Lock()
			r.fenced++
			r.mu.Unlock()
		case err != nil && !lease.Held(err) && !errors.Is(err, errLostReply) && ctx.Err() == nil:
			r.Error(err)
			return
		}
		pause(ctx, upTo(rnd, hammerTTL/8))
	}
}

func (r *ring) done(ctx context.Context) bool {
	depth, err := r.Intents.Depth(ctx, r.signer)
	inFlight, err2 := r.Intents.InFlight(ctx, r.signer)
	if err := errors.Join(err, err2); err != nil && ctx.Err() == nil {
		r.Error(err)
		return true
	}
	return depth+len(inFlight) == 0
}

// serve is one lease term. It adopts what is in flight, then claims until the lease is lost.
func (r *ring) serve(ctx context.Context, fence lease.Fence, rnd *rand.Rand) error {
	n := &node{bench: r.bench, fence: fence}
	var err error
	if n.cursor, err = r.Nonces.TakeOver(ctx, fence, r.ledger.latest()); err != nil {
		return err
	}
	for {
		if err := r.confirm(ctx, n, rnd); err != nil {
			return err
		}
		heads, err := r.Intents.Heads(ctx, r.signer, txm.Pick{Limit: 1 + rnd.IntN(3)})
		if err != nil || len(heads) == 0 {
			return err
		}
		if err := r.execute(ctx, n, heads, rnd); err != nil {
			return err
		}
	}
}

var errLostReply = errors.New("the reply was lost")

// execute claims intents as one batch, and broadcasts what was stored.
func (r *ring) execute(ctx context.Context, n *node, intents []txm.Intent, rnd *rand.Rand) error {
	b, after := r.batch(n, intents)
	r.oversleep(ctx, rnd)
	var err error
	if rnd.IntN(10) > 0 { // else the request itself is lost
		err = r.Intents.Claim(ctx, n.fence, b)
	}
	if rnd.IntN(5) == 0 {
		err = errLostReply
	}
	switch {
	case errors.Is(err, errLostReply):
		hash, lookUp := r.Intents.Claimed(ctx, b.Claims[0].Intent)
		if lookUp != nil || hash != b.Claims[0].Tx.Hash {
			return errors.Join(err, lookUp) // the lease term begins again, from what is stored
		}
	case txm.Refused(err) == txm.CursorMoved || txm.Refused(err) == txm.Moved || txm.Refused(err) == txm.SignerFull:
		return errLostReply
	case err != nil:
		return err
	}
	n.cursor = after
	r.oversleep(ctx, rnd)
	for _, c := range b.Claims {
		// only stored bytes are broadcast
		if hash, err := r.Intents.Claimed(ctx, c.Intent); err == nil && hash == c.Tx.Hash {
			r.ledger.broadcast(c.Tx)
		}
	}
	return nil
}

// batch signs intents with the numbers the cursor promises, and returns the cursor after them.
func (r *ring) batch(n *node, intents []txm.Intent) (b txm.Batch, after nonce.Cursor) {
	b, after = txm.Batch{Cursor: n.cursor.Next, Limits: limits}, n.cursor
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range intents {
		tx := sign(i.ID, r.signer, after.Promise())
		r.signed[tx.Hash] = i.ID
		b.Claims, after = append(b.Claims, txm.Claim{Intent: i.ID, Kind: i.Job.Kind, Tx: tx}), after.Taken(tx.Nonce)
	}
	return b, after
}

// confirm broadcasts what is in flight again and finishes what was mined.
func (r *ring) confirm(ctx context.Context, n *node, rnd *rand.Rand) error {
	inFlight, err := r.Intents.InFlight(ctx, r.signer)
	if err != nil {
		return err
	}
	for _, f := range inFlight {
		tx := f.Newest().SignedTx
		r.ledger.broadcast(tx)
		if !r.ledger.has(tx.Hash, tx.Nonce) {
			continue
		}
		r.oversleep(ctx, rnd)
		receipt := minedAt(tx, tx.Nonce+1, 0)
		err := r.Intents.Record(ctx, n.fence, receipt)
		if err == nil {
			err = r.Intents.Finish(ctx, n.fence, txm.FinalReceipt{Receipt: receipt, Rest: settled})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oversleep pauses now and then, sometimes past the end of the lease.
func (r *ring) oversleep(ctx context.Context, rnd *rand.Rand) {
	if rnd.IntN(20) == 0 {
		pause(ctx, upTo(rnd, 2*hammerTTL))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *ring) judge(jobOf map[int64]string) {
	times := map[string]int{}
	for n, hash := range r.ledger.mined {
		intent, ours := r.signed[hash]
		if !ours {
			r.Fatalf("number %d was mined with bytes nobody signed", n)
		}
		times[jobOf[intent]]++
	}
	for id, n := range times {
		if n != 1 {
			r.Errorf("%s was executed %d times", id, n)
		}
	}
	jobs := hammerJobs()
	if len(times) != jobs || len(r.ledger.mined) != jobs {
		r.Errorf("%d of %d jobs were executed, by %d transactions", len(times), jobs, len(r.ledger.mined))
	}
	if r.fenced == 0 {
		r.Error("nobody was ever fenced out: the hammer proved nothing")
	}
	for _, e := range r.ended(r.signer, jobs) {
		if e.Intent.Outcome != job.Done || e.Intent.Attempt != 1 {
			r.Errorf("ended as %+v", e.Intent)
		}
	}
	r.Logf("%d jobs, %d lease terms fenced out", jobs, r.fenced)
}

func upTo(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
