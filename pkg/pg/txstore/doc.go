// Package txstore stores what the sender does: the leases of its signers and their nonces, the intents of its jobs, the
// transactions that were signed for them, and their receipts; the archive of what has ended, and what it came to in
// money. It implements [lease.Store], [nonce.Store], [txm.Store], [retention.Store] and what operators do to signers,
// over tables of schema keeper.
//
// # Guaranteed
//
//   - Every write under a lease locks the lease's row and compares its token in the statement that writes: a former
//     owner writes nothing.
//   - A number, its intent, its bytes and the cursor change in one statement, which is on disk before it is answered.
//   - The limits of what is in flight (one transaction for an order, an account, a side, the keeper's places for
//     liquidations) are kept by unique indexes, whatever process asks.
//   - Nothing here writes the state derived from the chain.
//
// # Not guaranteed
//
//   - Nothing here retries. After an error that is no refusal it is unknown whether a write took effect.
package txstore
