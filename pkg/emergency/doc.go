// Package emergency is the protocol for when keepers fail (LIQ-15): which actions a condition calls for, and the order
// in which an action is planned, rehearsed, recorded and handed over.
//
// Four actions, each off by default: notify the operators; let liquidations that wait for their next try be tried at
// once; pause new positions; raise the collateral that new positions need. The last two are calls of the venue's Config
// contract by an account with a role there. This package and the keeper's processes never sign such a call: they make
// it, rehearse it as that account, and hand it over to whoever holds the account (docs/adr/0009).
//
// # Guaranteed
//
//   - Nothing is done that is not configured, and nothing but a plan and a rehearsal comes of a dry run.
//   - What is to be done is on record before it is done, and what came of it afterwards.
//   - If one call of an action would fail, none of them is handed over.
//
// # Not guaranteed
//
// That what was handed over was sent: whoever sends it says so (the stage done).
package emergency
