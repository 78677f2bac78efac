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

// The states of an intent, and what each must not be taken for.
const (
	Queued State = "QUEUED" // it does not say that the job is still pending, nor that anybody works on it
	// Signed does not say that nothing was broadcast: the answer may have been lost, or the process.
	Signed State = "SIGNED"
	Sent   State = "SENT"  // it does not say that any node still has the transaction
	Mined  State = "MINED" // it does not say that the block stays, nor that the job was done
	// FinalOK does not mean that the order was executed: the venue may have cancelled or frozen it. The outcome says
	// which.
	FinalOK       State = "FINAL_OK"
	FinalReverted State = "FINAL_REVERTED"  // it does not say that the job is still pending
	FinalLostRace State = "FINAL_LOST_RACE" // it does not say by whom the job was done, and it is no failure
	// Cancelled does not say that the job was done, or never broadcast: only that what was mined at its nonce did
	// nothing.
	Cancelled State = "CANCELLED"
	// Skipped does not say that the job was done: it may have recovered, or grown too old. No nonce was spent.
	Skipped State = "SKIPPED"
	// Foreign does not say what the transaction was that took our nonce, nor, where an operator has written it off,
	// that any did. The signer is paused until an operator has looked, unless a resync has found that it may come.
	Foreign State = "FOREIGN"
)

// transitions are the states that each may be followed by.
var transitions = map[State][]State{
	Queued: {Signed, Skipped},
	Signed: {Sent, Mined, Foreign},
	Sent:   {Mined, Foreign},
	Mined:  {Sent, FinalOK, FinalReverted, FinalLostRace, Cancelled},
}

// States lists every state.
func States() []State {
	return []State{Queued, Signed, Sent, Mined, FinalOK, FinalReverted, FinalLostRace, Cancelled, Skipped, Foreign}
}

// To reports whether an intent may go from one state to another.
func (s State) To(next State) bool { return slices.Contains(transitions[s], next) }

// From lists the states that an intent may come from.
func (s State) From() []State {
	return slices.DeleteFunc(States(), func(before State) bool { return !before.To(s) })
}

// InFlight reports whether the intent has a nonce whose fate is open.
func (s State) InFlight() bool { return s == Signed || s == Sent || s == Mined }

// Replaceable reports whether another transaction may be made at the intent's nonce.
func (s State) Replaceable() bool { return s == Signed || s == Sent }

// Terminal reports whether the attempt has ended. It may then be followed by the next attempt of its job, and by no
// other.
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
