package txm

import (
	"slices"

	"perpkeeper/pkg/job"
)

// State is how far an intent has come.
//
// "Checked" is no state: a check is worth something in the moment before the claim, and a stored one would be believed
// later.
type State string

// The states of an intent.
const (
	Queued        State = "QUEUED"
	Signed        State = "SIGNED"
	Sent          State = "SENT"
	Mined         State = "MINED"
	FinalOK       State = "FINAL_OK"
	FinalReverted State = "FINAL_REVERTED"
	FinalLostRace State = "FINAL_LOST_RACE"
	Cancelled     State = "CANCELLED"
	Skipped       State = "SKIPPED"
	Foreign       State = "FOREIGN"
)

// rule is what a state allows, and what it must not be taken for.
type rule struct {
	next []State
	not  string
}

var rules = map[State]rule{
	Queued: {[]State{Signed, Skipped},
		"It does not say that the job is still pending, nor that anybody works on it."},
	Signed: {[]State{Sent, Mined, Foreign},
		"It does not say that nothing was broadcast: the answer may have been lost, or the process."},
	Sent: {[]State{Mined, Foreign}, "It does not say that any node still has the transaction."},
	Mined: {[]State{Sent, FinalOK, FinalReverted, FinalLostRace, Cancelled},
		"It does not say that the block stays, nor that the job was done."},
	FinalOK: {nil,
		"It does not say that the order was executed: the venue may have cancelled or frozen it. The outcome says " +
			"which."},
	FinalReverted: {nil, "It does not say that the job is still pending."},
	FinalLostRace: {nil, "It does not say by whom the job was done, and it is no failure."},
	Cancelled: {nil,
		"It does not say that the job was done, or never broadcast: only that what was mined at its nonce did nothing."},
	Skipped: {nil,
		"It does not say that the job was done: it may have recovered, or grown too old. No nonce was spent."},
	Foreign: {nil,
		"It does not say what the transaction was that took our nonce. The signer is paused until an operator has " +
			"looked."},
}

// States lists every state.
func States() []State {
	return []State{Queued, Signed, Sent, Mined, FinalOK, FinalReverted, FinalLostRace, Cancelled, Skipped, Foreign}
}

// To tells whether an intent may go from one state to another.
func (s State) To(next State) bool { return slices.Contains(rules[s].next, next) }

// From lists the states that an intent may come from.
func (s State) From() []State {
	return slices.DeleteFunc(States(), func(before State) bool { return !before.To(s) })
}

// Not is one sentence about what the state does not imply.
func (s State) Not() string { return rules[s].not }

// InFlight tells whether the intent has a nonce whose fate is open.
func (s State) InFlight() bool { return s == Signed || s == Sent || s == Mined }

// Replaceable tells whether another attempt may be made at the intent's nonce.
func (s State) Replaceable() bool { return s == Signed || s == Sent }

// Terminal tells whether the arm has ended. It may then be followed by the next arm of its job, and by no other.
func (s State) Terminal() bool { return !s.InFlight() && s != Queued }

// Final is the state that a mined transaction's outcome leads to.
func Final(o job.Outcome) State {
	switch o {
	case job.Done, job.CancelledByVenue, job.FrozenByVenue:
		return FinalOK
	case job.LostRace:
		return FinalLostRace
	case job.SkippedDone, job.DroppedRecovered, job.Expired, job.Refused, job.Withdrawn:
		return Cancelled
	default:
		return FinalReverted
	}
}
