// Package txmanager gives calls to a chain as transactions of one signer: it claims nonces under a lease, broadcasts,
// confirms, replaces and records. It knows nothing of the venue the calls are for: what a job asks for, whose turn it
// is and whether it is still to be done are stages that its user hands in.
//
// A [Manager] works signers. For each that is its own [Manager.Work] holds the lease and runs five loops under it:
//
//	drain      leads the most urgent intents through the stages, claims nonces for those that get through, and
//	           broadcasts
//	confirm    follows what is in flight, by receipts over all hashes of a nonce, until a block is final; broadcasts
//	           again what is not mined, raises its price, and frees the nonce of what is not to be done any more
//	external_use  looks, also while nothing is sent, whether somebody else uses the signer's key
//	report     publishes what has ended
//	retry      has what failed for a cause that may pass tried again when its pause is over
//
// Everything a loop knows is in the store, so that the next owner of the lease goes on where this one stopped, whether
// it stopped or was killed. A [Stepper] makes the same passes without goroutines, for whoever simulates time.
//
// # Guaranteed
//
//   - No nonce is given to two intents, and no intent has two transactions that could both be mined: the claim is one
//     fenced statement, and an attempt that has a nonce keeps it.
//   - Only stored bytes are broadcast (NON-13).
//   - An intent ends only on a final block, or before it has a nonce; how it ended is published at least once.
//   - A write that the store refuses because the lease has moved on ends the lease term and is counted; the intent goes
//     on with the next owner (NON-8).
//   - What waits or is refused keeps nothing else from being sent, unless a stage decides that nothing can be.
//
// # Not guaranteed
//
//   - That a transaction lands in time: prices are raised up to their caps, and then it is broadcast again until it
//     lands or its nonce is spent.
//   - That a result is published once.
package txmanager
