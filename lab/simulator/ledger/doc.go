// Package ledger keeps a keeper's leases, nonces, intents, transactions and receipts in memory, as pkg/pg keeps them in
// Postgres: for simulations that run thousands of jobs in virtual time.
//
// # Guaranteed
//
//   - It answers as Postgres does, as far as the conformance suites of pkg/txmgr/lease, pkg/txmgr/nonce and
//     pkg/txmgr/txm ask, which both pass. Numbers that are held for a remote signature are out of their reach.
//   - It starts no goroutine and no timer and reads no clock but the one it was given. It is safe for concurrent use.
//   - A call takes no time, so that deadlines of contexts are not asked: a slow machine changes no simulation.
//
// # Not guaranteed
//
//   - Nothing is durable.
//   - Slices inside jobs are shared with the callers: nobody may change them.
package ledger
