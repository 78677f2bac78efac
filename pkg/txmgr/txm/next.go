package txm

import (
	"time"

	"perpkeeper/pkg/job"
)

// Observation is what the chain and its nodes show of one pending transaction. Final and FinalNonce are asked for
// before the receipts: a nonce that was spent in a final block then has its receipt.
type Observation struct {
	// Receipt is that of any of the pending transaction's hashes, in a block that the node takes for canonical; nil
	// when there is none.
	Receipt *Receipt
	// Head is the newest block the answering node has, Final the highest finalized one this process has ever seen.
	Head, Final uint64
	// FinalNonce is the signer's next nonce as of a finalized block.
	FinalNonce uint64
	// Missing is how long FinalNonce has been above the pending transaction's nonce without a receipt.
	Missing time.Duration
	// Sent is what this lease term has done about the newest transaction.
	Sent Sending
	// Enough is the newest block that shows that the newest transaction pays enough; 0 for none.
	Enough uint64
	// Over is true when the job is another keeper's for now: nothing is broadcast that could execute it.
	Over bool
	// InTheWay is true when it is over until that keeper is done, and later nonces wait for this one.
	InTheWay bool
	// Lane is the one that the pending transaction is paid and pressed for, see [Inherit]; empty for its own.
	Lane job.Lane
}

// Sending is what became of the broadcasts of one transaction in this lease term. The zero Sending was never broadcast.
type Sending struct {
	// First and Last are the heads at its first and its last broadcast; 0 while no head had come. What was taken after
	// it had been refused is as good as new: First is then that head.
	First, Last uint64
	Ever        bool
	// Answer is what the nodes' answers so far ask for, and Refused how many broadcasts in a row they have refused for
	// what money does not mend.
	Answer  Answer
	Refused int
	// Overdue is true when the public nodes were not given it, and the time for which they are not is over.
	Overdue bool
}

// Answer is what the nodes' answers about a transaction ask for.
type Answer int

// The answers.
const (
	// Unpooled: no node is known to have it, and none has said that it is too cheap. More money would buy nothing,
	// whatever the reason: look at the job anew, and broadcast the same bytes again.
	Unpooled Answer = iota
	Pooled          // a node has it: wait, broadcast the same bytes again, and pay more in time
	TooCheap        // another transaction is at this nonce, or the price is below what nodes take: raise it
	Never           // no node will ever take these bytes: the nonce has to be freed by others
)

// Step is what to do about a pending transaction now.
type Step int

// The steps.
const (
	// Wait for the next block.
	Wait Step = iota
	// Broadcast the newest transaction, the bytes as they are stored.
	Broadcast
	// Resume a pending transaction that another lease term has left, or that no node has: cancel it if its job is no
	// longer to be done, and else broadcast the newest transaction as it stands.
	Resume
	// Replace the newest transaction by one that pays more, if the job is still to be done and the caps leave room, and
	// else broadcast it again.
	Replace
	// Yield to the keeper whose job it is now: cancel the pending transaction if its job is no longer to be done, or if
	// it is in the way, and else leave it as it is.
	Yield
	// CancelNonce frees the nonce of bytes that no node takes, or that an operator has called off.
	CancelNonce
	// Record the receipt, in place of the stored one if there is one.
	Record
	// Unmine the stored receipt: its block left the chain. The pending transaction is Sent again, at the same nonce.
	Unmine
	// Finish the intent: its receipt's block is final.
	Finish
	// NonceLost: somebody else's transaction spent it, in a final block.
	NonceLost
)

var stepNames = [...]string{"wait", "broadcast", "resume", "replace", "yield", "cancel nonce", "record", "unmine",
	"finish", "nonce lost"}

// String names the step.
func (s Step) String() string { return stepNames[s] }

// Next returns what to do about a pending transaction. The order of the cases is the policy: what the chain holds comes
// before what we would like.
func (p Policy) Next(f PendingTx, s Observation) Step {
	switch {
	case s.Receipt != nil && (f.Mined == nil || !f.Mined.Same(*s.Receipt)):
		return Record
	case s.Receipt != nil && s.Receipt.Block.Number <= s.Final:
		return Finish
	case s.Receipt != nil:
		return Wait
	case f.Mined != nil && f.Mined.Block.Number > s.Head:
		return Wait // the node that answered has not reached the receipt's block: it cannot know
	case f.Mined != nil:
		return Unmine
	case s.FinalNonce > f.Intent.Nonce && s.Missing >= p.LostAfter:
		return NonceLost
	case s.FinalNonce > f.Intent.Nonce:
		return Wait
	}
	return p.nextUnmined(f, s)
}

// nextUnmined returns what to do about a pending transaction that could still be mined and is not. What is resumed is
// not raised at once: it may be in every pool. A raise is for bytes that a node has, or calls too cheap, and not for
// what waits behind our own, unless a liquidation waits behind it. What only frees a nonce is pressed in anybody's
// time.
func (p Policy) nextUnmined(f PendingTx, s Observation) Step {
	patience := p.Of(s.For(f)).Patience
	if s.For(f) == job.LiquidationLane && f.Intent.Job.Kind.Lane() != job.LiquidationLane {
		// blocks take other signers' liquidations before it
		patience = 1
	}
	switch {
	case f.Intent.CalledOff != "" && !f.Leaving():
		return CancelNonce
	case s.Sent.Ever && s.Sent.Answer == Never:
		return CancelNonce
	case s.Over && !f.Leaving():
		return Yield
	case !s.Sent.Ever:
		return Resume
	case s.Sent.Answer == TooCheap || s.Sent.Answer == Pooled && s.passed() >= patience:
		return Replace
	case s.Sent.Answer == Unpooled && p.Due(s):
		return Resume
	case p.Due(s):
		return Broadcast
	}
	return Wait
}

// Due reports whether it is time to broadcast the same bytes again. A head that went down may have taken what was sent
// with its blocks. Each refusal in a row doubles the pause.
func (p Policy) Due(s Observation) bool {
	const longest = 4 // doublings: 32 blocks, about 14 s, as resend is 2
	pause := resend << min(max(s.Sent.Refused-1, 0), longest)
	return s.Sent.Overdue || s.Head < s.Sent.Last || s.Head-s.Sent.Last >= pause
}

// passed counts the blocks since the first broadcast, or since the last one that shows that the price is enough. Those
// since a broadcast before the first head are not known: it is repeated before it is taken for late.
func (s Observation) passed() uint64 {
	if s.Sent.First == 0 {
		return 0
	}
	return s.Head - min(s.Head, max(s.Sent.First, s.Enough))
}
