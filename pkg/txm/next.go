package txm

import "time"

// Sight is what the chain shows of one flight. Final and FinalNonce are asked for before the receipts: a nonce that was spent in a final block then has
// its receipt.
type Sight struct {
	// Receipt is that of any of the flight's hashes, in a block that the node takes for canonical; nil when there is none.
	Receipt *Receipt
	// Head is the newest block the answering node has, Final the highest finalized one this process has ever seen.
	Head, Final uint64
	// FinalNonce is the signer's next nonce as of a finalized block.
	FinalNonce uint64
	// SinceSend is how long ago this tenure last broadcast the flight; a long time if it never did.
	SinceSend time.Duration
	// Missing is how long FinalNonce has been above the flight's nonce without a receipt.
	Missing time.Duration
}

// Step is what to do about a flight now.
type Step int

// The steps.
const (
	// Wait for the next block.
	Wait Step = iota
	// Broadcast the newest attempt, the bytes as they are stored.
	Broadcast
	// Record the receipt, in place of the stored one if there is one.
	Record
	// TakeBack the stored receipt: its block left the chain. The flight is Sent again, at the same nonce.
	TakeBack
	// Finish the intent: its receipt's block is final.
	Finish
	// Disown the nonce: somebody else's transaction spent it, in a final block.
	Disown
)

var stepNames = [...]string{"wait", "broadcast", "record", "take back", "finish", "disown"}

// String names the step.
func (s Step) String() string { return stepNames[s] }

// Next says what to do about a flight. The order of the cases is the policy: what the chain holds comes before what we would like.
func (p Policy) Next(f Flight, s Sight) Step {
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
		return TakeBack
	case s.FinalNonce > f.Intent.Nonce && s.Missing >= p.Doubt:
		return Disown
	case s.FinalNonce > f.Intent.Nonce:
		return Wait
	case s.SinceSend >= p.Resend:
		return Broadcast
	}
	return Wait
}
