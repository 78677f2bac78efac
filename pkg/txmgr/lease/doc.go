// Package lease decides which process may act for a signer, and proves it to the database with every write.
//
// One row per signer names its owner. Taking, renewing and giving back the row are single statements, judged by the
// database's clock (NON-5). A [Fence] is what the owner holds: signer, owner and token. Every later write for the
// signer presents it, and the database compares it with the row under lock, in the statement that writes (NON-7): a
// time limit alone never decides who may write (LIQ-18).
//
// # Guaranteed, given a [Store] that passes the suite in leasetest
//
//   - The token rises with every change of owner, and whenever an owner returns after its lease ran out. It never
//     falls: the row is never deleted. A write that presents an older token changes nothing (NON-1, NON-2).
//   - An owner is one start of one process ([NewOwner]): a process that comes back is another owner.
//   - A try to take a lease that somebody holds writes nothing and locks nothing, so that it never delays the holder's
//     renewal.
//   - A holder whose process is gone is succeeded before its lease ends, by evidence: it had a session with the store,
//     and has had none for a [Moment]. One that lost its session, and lives, is not, nor is one that never had any; and
//     if it were, the token would stop its writes as ever.
//   - A [Term] ends here before its lease ends in the database: its deadline counts from before the request was sent.
//
// # Not guaranteed
//
//   - A store's clock that goes back makes leases last longer, by as much: those of holders that are gone. Whoever asks
//     gets a [HeldError], and an operator may end such a term.
//   - The deadline is no fence. A process may be paused between asking [Term.Check] and acting; what stops it then is
//     the token.
//   - The chain compares no tokens. A paused owner may still broadcast what it had signed, which is why nothing is
//     signed that is not stored with its nonce and its job first.
//   - A machine that sleeps stops its monotonic clock, so that a process may hold a term for valid after its lease
//     has ended. The token stops its writes.
package lease
