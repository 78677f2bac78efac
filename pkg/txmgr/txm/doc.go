// Package txm is the life of one transaction, as values: the states of an intent, the price it pays, and what to do
// next given what is stored and what the chain shows. It reads no clock, asks no node and writes nothing.
//
// An intent is one attempt of a job in this keeper. It gets a nonce and a signed transaction in one step, and keeps
// both: whatever is broadcast for it later carries that nonce, so that at most one of its transactions can ever be
// mined.
//
// # Guaranteed, given a [Store] that passes the suite in txmtest
//
//   - A transaction is stored, with its nonce and its job, before anybody can broadcast it (NON-13).
//   - An intent ends on finalized blocks only. A mined transaction whose block left the chain is sent again, the same
//     bytes at the same nonce.
//   - Whatever else is signed for it has the same nonce, pays more by what nodes ask for, and is stored first as well.
//     Once a job is given up, only payments to oneself are signed at its nonce.
//   - A job has at most one live attempt, an account at most one liquidation in flight, and a keeper at most as many as
//     its configuration says (LIQ-6).
//
// # Not guaranteed
//
//   - That an intent which never got a nonce is executed: it is a wish, and [Skipped] is a regular end.
//   - That a transaction lands in time. Its price is raised up to the caps of its lane, job and day, and no further.
package txm
