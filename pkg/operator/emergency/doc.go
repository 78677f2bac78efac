// Package emergency is the protocol for when keepers fail (LIQ-15): which actions a condition calls for, and the order
// in which an action is planned, rehearsed, recorded and handed over.
//
// Four actions, each off by default: notify the operators; let liquidations that wait for their next try be tried at
// once; pause new positions; raise the collateral that new positions need. The last two are calls of the venue's Config
// contract by an account with a role there. They are made, rehearsed as that account, and handed over to whoever holds
// it; or, where that is configured, sent with a key that is for nothing else and signs nothing else (docs/adr/0009). A
// keeper's senders never sign such a call.
//
// # Guaranteed
//
//   - Nothing is done that is not configured, and nothing but a plan and a rehearsal comes of a dry run.
//   - What is to be done is on record before it is done, and what came of it afterwards.
//   - If one call of an action would fail, none of them is handed over or sent.
//   - The emergency signer signs no call but those that are configured, and a transaction is on record before it is
//     broadcast.
//
// # Not guaranteed
//
//   - That what was handed over was sent: whoever sends it records that (the stage done).
//   - What became of a call at the stage sent: it may have been broadcast or not, and land or not.
package emergency
