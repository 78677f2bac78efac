package sender

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/turns"
)

// confirm follows what is in flight. What it finds out it writes down before it goes on; what it remembers itself is
// only since when something has been missing.
type confirm struct {
	tenure    *lease.Tenure
	signer    chain.Address
	turns     *turns.Tracker
	policy    txm.Policy
	rest      func(i txm.Intent, o job.Outcome) txm.Rest
	node      watcher
	store     txm.Flights
	judge     preflight.Judge
	broadcast *broadcast
	renewal   renewal
	horizon   *headtrack.Tracker
	clock     func() time.Time
	// timeout is after how long without a receipt people are told (LIQ-10). It frees nothing.
	timeout time.Duration
	metrics *Metrics
	log     zerolog.Logger
	ended   func()          // called when an intent has ended
	freed   func()          // called when places have become free
	observe func(txm.Taken) // told what each block shows of what was sent
	below   *uint64         // the number that the store was told of last, see mined

	missing map[int64]time.Time // since when a nonce is known to be spent without a receipt of ours
	seen    map[int64]time.Time // since when an intent is known to be in flight
	late    map[int64]bool      // intents of which people were told that they wait for their receipt
}

// tip is where the chain stands: what is common to all flights of a pass.
type tip struct {
	txm.Sight
	latest uint64 // the signer's next nonce: nothing from it on was mined
	ours   uint64 // the highest number of a flight whose turn is ours
	waits  error  // why nothing can be called final; nil if something can
}

// watcher tells what became of transactions.
type watcher interface {
	counter
	settled
	Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error)
	Head(ctx context.Context) (chain.BlockRef, error)
	Endpoints() []evm.EndpointStatus
	Elsewhere(than ...evm.Source) evm.Reader
}

// settled are facts that cannot be taken back: two endpoints that differ in host have to agree, where there are two.
// Until they do an error says so; see [evm.Undecided].
type settled interface {
	Finalized(ctx context.Context) (chain.BlockRef, error)
	SettledHash(ctx context.Context, number uint64) (chain.Hash, error)
	// MinedNonce is how many of an account's transactions are mined, and can be taken back by a reorg.
	MinedNonce(ctx context.Context, account chain.Address) (evm.MinedNonce, error)
	SettledNonce(ctx context.Context, account chain.Address, final uint64) (uint64, error)
	// SettledReceipt is the block that holds a transaction, and whether it succeeded there.
	SettledReceipt(ctx context.Context, tx chain.Hash) (block chain.Hash, ok bool, err error)
}

// pass looks at every flight once. One that fails does not keep the others from being looked at.
func (c *confirm) pass(ctx context.Context) error {
	flights, err := c.store.InFlight(ctx, c.signer)
	if err != nil {
		return err
	}
	c.remember(flights)
	if len(flights) == 0 {
		return nil
	}
	at, err := c.tip(ctx, flights)
	if err != nil {
		return err
	}
	for _, f := range flights {
		if c.turns.Ask(f.Intent.Job).Mine {
			at.ours = max(at.ours, f.Intent.Nonce)
		}
	}
	problems := []error{at.waits}
	for _, f := range flights {
		err := c.follow(ctx, f, at)
		if lease.Lost(err) {
			return err
		}
		if err != nil && txm.Refused(err) == "" { // what moved meanwhile is seen by the next pass
			problems = append(problems, fmt.Errorf("nonce %d: %w", f.Intent.Nonce, err))
		}
	}
	return errors.Join(problems...)
}

// remember forgets whatever is no longer in flight.
func (c *confirm) remember(flights []txm.Flight) {
	c.metrics.inFlight.WithLabelValues(c.signer.Hex()).Set(float64(len(flights)))
	flying, intents, liquidations := map[chain.Hash]bool{}, map[int64]bool{}, 0
	for _, f := range flights {
		intents[f.Intent.ID] = true
		if _, known := c.seen[f.Intent.ID]; !known {
			c.seen[f.Intent.ID] = c.clock()
		}
		if f.Intent.Job.Kind == job.Liquidation {
			liquidations++
		}
		for _, hash := range f.Hashes() {
			flying[hash] = f.Mined == nil && hash == f.Newest().Hash
		}
	}
	c.broadcast.look(slices.DeleteFunc(slices.Clone(flights), c.abandoned))
	held := 0.0
	if c.broadcast.held() != "" {
		held = 1
	}
	c.metrics.held.WithLabelValues(c.signer.Hex()).Set(held)
	c.metrics.liquidations.WithLabelValues(c.signer.Hex()).Set(float64(liquidations))
	c.broadcast.forget(flying)
	maps.DeleteFunc(c.missing, func(id int64, _ time.Time) bool { return !intents[id] })
	maps.DeleteFunc(c.seen, func(id int64, _ time.Time) bool { return !intents[id] })
	maps.DeleteFunc(c.late, func(id int64, _ bool) bool { return !intents[id] })
}

// abandoned tells of a flight that it is another tier's for good until that one has had its window. What is claimed
// behind it makes way for itself, see [txm.Sight]; so nobody has to wait until it lands.
func (c *confirm) abandoned(f txm.Flight) bool {
	return c.turns.Ask(f.Intent.Job).Passed && !f.Leaving()
}

// tip asks before the receipts are asked for: what is final then has its receipt. While no two endpoints agree on what
// is final, nothing is: flights are followed all the same, none ends, and it is said what for.
func (c *confirm) tip(ctx context.Context, flights []txm.Flight) (at tip, err error) {
	if at.latest, err = c.mined(ctx, flights); err != nil {
		return at, err
	}
	final, err := c.node.Finalized(ctx)
	switch {
	case err == nil:
		at.Final = final.Number
	case evm.Undecided(err):
		at.waits = err
	default:
		return at, err
	}
	head, err := c.node.Head(ctx)
	at.Head = head.Number
	return at, err
}

// mined returns the signer's next nonce in the newest block as anybody has it, and tells the store below which number
// transactions are mined as two hosts have it: these take no places any more. Asking for the signer's nonce is asking
// once for all of them. While too few answer, places stay taken. What blocks take moves the limits.
func (c *confirm) mined(ctx context.Context, flights []txm.Flight) (newest uint64, err error) {
	n, err := c.node.MinedNonce(ctx, c.signer)
	if err != nil {
		return 0, err
	}
	landed := uint64(0)
	if n.Sure && (c.below == nil || *c.below != n.Agreed) {
		if err := c.store.MinedBelow(ctx, c.tenure.Fence(), n.Agreed); err != nil {
			return n.Newest, err
		}
		if c.below != nil {
			landed = n.Agreed - min(n.Agreed, *c.below)
		}
		c.below = &n.Agreed
	}
	waiting, refused := c.broadcast.waiting(flights, n.Newest)
	c.observe(txm.Taken{Block: c.horizon.Number(), Landed: landed, Waiting: waiting, Refused: refused})
	if landed > 0 {
		c.freed()
	}
	return n.Newest, nil
}

// spent returns the signer's next nonce in the newest final block, if anybody says that a flight's number was used and
// there is no receipt of ours: only then does it matter.
func (c *confirm) spent(ctx context.Context, f txm.Flight, at tip) (uint64, error) {
	if at.Final == 0 || f.Intent.Nonce >= at.latest && !c.broadcast.spent(f.Newest().Hash) {
		return 0, nil
	}
	return c.node.SettledNonce(ctx, c.signer, at.Final)
}

// follow does the one thing that a flight needs now. While no two endpoints agree on how many nonces were spent for
// good, its own is not: it is broadcast and replaced as ever, which costs nothing if it was, and the doubt is told.
func (c *confirm) follow(ctx context.Context, f txm.Flight, at tip) error {
	s, doubt := at.Sight, error(nil)
	found, err := c.receipt(ctx, f, at)
	if err != nil {
		return err
	}
	if found != nil {
		s.Receipt = &txm.Receipt{
			TxHash: found.Hash, Block: chain.BlockRef{Number: found.Block, Hash: found.BlockHash}, OK: found.OK,
			GasUsed: found.GasUsed, GasPrice: found.GasPrice,
		}
	} else if s.FinalNonce, err = c.spent(ctx, f, at); evm.Undecided(err) {
		doubt = err
	} else if err != nil {
		return err
	}
	s.Sent = c.broadcast.sending(f.Newest().Hash)
	if doubt == nil {
		s.Missing = c.missingFor(f, s)
	}
	turn := c.turns.Ask(f.Intent.Job)
	s.Over, s.InTheWay = !turn.Mine, turn.Passed && at.ours > f.Intent.Nonce
	c.watch(f, s)
	return errors.Join(doubt, c.step(ctx, f, s, found))
}

// step does what the policy says.
func (c *confirm) step(ctx context.Context, f txm.Flight, s txm.Sight, found *evm.Receipt) error {
	switch c.policy.Next(f, s) {
	case txm.Record:
		return c.record(ctx, f, *found, *s.Receipt)
	case txm.TakeBack:
		return c.takeBack(ctx, f, s)
	case txm.Finish:
		return c.finish(ctx, f)
	case txm.Disown:
		return c.disown(ctx, f, s)
	case txm.Broadcast:
		return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
	case txm.Adopt:
		return c.renewal.adopt(ctx, f, s)
	case txm.Replace:
		return c.renewal.replace(ctx, f, s)
	case txm.Yield:
		return c.renewal.yield(ctx, f, s)
	case txm.Free:
		return c.renewal.free(ctx, f, s)
	default:
		return nil
	}
}

// watch tells people of what waits for its receipt for too long in this tenure. How long it was queued before, for its
// turn or its price, is no matter here.
func (c *confirm) watch(f txm.Flight, s txm.Sight) {
	if s.Receipt != nil || c.clock().Sub(c.seen[f.Intent.ID]) < c.timeout || c.late[f.Intent.ID] {
		return
	}
	c.late[f.Intent.ID] = true
	c.metrics.timeouts.WithLabelValues(string(f.Intent.Job.Kind)).Inc()
	c.log.Warn().Str("job", f.Intent.Job.ID).Uint64("nonce", f.Intent.Nonce).Int("attempts", len(f.Attempts)).
		Str("class", f.Newest().LastClass).
		Msg("no receipt yet; it is broadcast again until there is one")
}

// receipt finds the one transaction of the nonce that was mined, if any: the dearest is the likeliest. A nonce that the
// chain has not reached has none; where endpoints disagree about that, it is asked for. Nor is one of the transactions
// mined in a block that the final chain has left, whoever still has it.
func (c *confirm) receipt(ctx context.Context, f txm.Flight, at tip) (*evm.Receipt, error) {
	if f.Mined == nil && f.Intent.Nonce >= at.latest && !c.broadcast.spent(f.Newest().Hash) {
		return nil, nil //nolint:nilnil // as of the node's own answer: what is not mined is no error
	}
	for _, hash := range slices.Backward(f.Hashes()) {
		r, err := c.node.Receipt(ctx, hash)
		if err != nil {
			return nil, err
		}
		if stands, err := c.stands(ctx, r, at.Final); err != nil || stands {
			return r, err
		}
	}
	return nil, nil //nolint:nilnil // as of the node's own answer: what is not mined is no error
}

// stands tells of a receipt whether its block is one of the chain's, as far as that is settled: an endpoint that is
// stuck on a branch that the others have left goes on giving its receipts, and the number of their block becomes final
// all the same.
func (c *confirm) stands(ctx context.Context, r *evm.Receipt, final uint64) (bool, error) {
	if r == nil || r.Block > final {
		return r != nil, nil
	}
	hash, err := c.node.SettledHash(ctx, r.Block)
	return hash == r.BlockHash, err
}

// missingFor is how long a spent nonce has been without a receipt of ours.
func (c *confirm) missingFor(f txm.Flight, s txm.Sight) time.Duration {
	if s.Receipt != nil || s.FinalNonce <= f.Intent.Nonce {
		delete(c.missing, f.Intent.ID)
		return 0
	}
	since, known := c.missing[f.Intent.ID]
	if !known {
		since = c.clock()
		c.missing[f.Intent.ID] = since
	}
	return c.clock().Sub(since)
}

func (c *confirm) record(ctx context.Context, f txm.Flight, found evm.Receipt, r txm.Receipt) (err error) {
	if r.Outcome, r.Reason, err = c.outcome(ctx, f, found); err != nil {
		return err
	}
	// the job is done all the same, and whoever reads the result sees that this is missing
	if r.Settlement, err = c.settlement(f, found); err != nil {
		c.log.Error().Err(err).Str("job", f.Intent.Job.ID).Str("hash", found.Hash.Hex()).
			Msg("what the transaction came to is left out of its result")
	}
	failpoint.Hit("sender.receipt.before")
	if err := c.store.Record(ctx, c.tenure.Fence(), r); err != nil {
		return err
	}
	failpoint.Hit("sender.receipt.after")
	c.metrics.landed.WithLabelValues(string(f.Intent.Job.Kind)).Observe(c.horizon.Age(f.Intent.Job.BirthMs).Seconds())
	c.tell("mined", f, r)
	return nil
}

// outcome is what the mined one of a flight's attempts has done.
func (c *confirm) outcome(ctx context.Context, f txm.Flight, found evm.Receipt) (job.Outcome, string, error) {
	mined, _ := f.Of(found.Hash)
	switch mined.Kind {
	case txm.Cancel:
		return f.Intent.Cancel.Outcome, f.Intent.Cancel.Reason, nil
	case txm.Fill:
		return job.SkippedDone, "the number was nobody's", nil
	default:
		return c.judge.Outcome(ctx, f.Intent.Job, found)
	}
}

// settlement is what the mined one of a flight's attempts came to for the owner of a position (LIQ-11).
func (c *confirm) settlement(f txm.Flight, found evm.Receipt) (*job.Settlement, error) {
	if mined, _ := f.Of(found.Hash); !found.OK || mined.Kind == txm.Cancel || mined.Kind == txm.Fill {
		return nil, nil //nolint:nilnil // it did nothing to a position, which is no error
	}
	return c.judge.Settlement(f.Intent.Job, found)
}

func (c *confirm) takeBack(ctx context.Context, f txm.Flight, s txm.Sight) error {
	failpoint.Hit("sender.take_back.before")
	if err := c.store.TakeBack(ctx, c.tenure.Fence(), *f.Mined); err != nil {
		return err
	}
	failpoint.Hit("sender.take_back.after")
	c.metrics.reorgs.Inc()
	c.tell("the block left the chain", f, *f.Mined)
	c.broadcast.restart(f.Newest().Hash)
	if s.Over && !f.Leaving() {
		return nil // whoever has the turn now executes it on the new branch
	}
	return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
}

// finish ends an intent. That its block is final and stands two endpoints have said already; that it holds the
// transaction they have to say as well: a block's receipts prove what was done, and not by which transaction.
func (c *confirm) finish(ctx context.Context, f txm.Flight) error {
	r := *f.Mined
	switch block, ok, err := c.node.SettledReceipt(ctx, r.TxHash); {
	case err != nil:
		return err
	case block != r.Block.Hash || ok != r.OK:
		return fmt.Errorf("its receipt is of block %s, success %t; two endpoints have it in block %s, success %t",
			r.Block.Hash, r.OK, block, ok)
	}
	failpoint.Hit("sender.finish.before")
	if err := c.store.Finish(ctx, c.tenure.Fence(), r, c.rest(f.Intent, r.Outcome)); err != nil {
		return err
	}
	failpoint.Hit("sender.finish.after")
	c.metrics.delay.WithLabelValues(string(f.Intent.Job.Kind)).Observe(c.horizon.Age(f.Intent.Job.BirthMs).Seconds())
	c.tell("final", f, r)
	c.turns.Ended(f.Intent.Job.ID, r.Outcome)
	c.ended()
	return nil
}

// disown believes that somebody else has the key, if enough endpoints say so, each for itself. While they do not,
// whoever says it may be wrong, and the transaction is broadcast as ever.
func (c *confirm) disown(ctx context.Context, f txm.Flight, s txm.Sight) error {
	if agree, need := agreement(c.node, func(one evm.Reader) bool { return c.foreign(ctx, one, f) }); agree < need {
		err := fmt.Errorf("%d of %d endpoints say that it was spent, and have no receipt of ours", agree, need)
		if !s.Sent.Ever || c.policy.Due(s) {
			err = errors.Join(err, c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx))
		}
		return err
	}
	reason := fmt.Sprintf("nonce %d was spent in a final block by a transaction that is not ours", f.Intent.Nonce)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: reason}, Rest: c.rest(f.Intent, job.Foreign)}
	if err := c.store.Disown(ctx, c.tenure.Fence(), f.Intent.ID, end); err != nil {
		return err
	}
	c.metrics.foreign.WithLabelValues(c.signer.Hex()).Inc()
	c.log.Error().Bool("critical", true).Str("job", f.Intent.Job.ID).Uint64("nonce", f.Intent.Nonce).
		Str("signer", c.signer.Hex()).
		Msg("somebody else uses this signer's key: the signer is paused until `keeperctl signer resync`")
	c.ended()
	return nil
}

// tell logs what became of a mined transaction. What went wrong is louder.
func (c *confirm) tell(what string, f txm.Flight, r txm.Receipt) {
	level := zerolog.InfoLevel
	if r.Outcome == job.Reverted {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Str("job", f.Intent.Job.ID).Uint32("arm", f.Intent.Arm).Uint64("nonce", f.Intent.Nonce).
		Str("hash", r.TxHash.Hex()).
		Uint64("block", r.Block.Number).Str("outcome", string(r.Outcome)).Str("reason", r.Reason).
		Dur("age_ms", c.horizon.Age(f.Intent.Job.BirthMs)).Msg(what)
}
