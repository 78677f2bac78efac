// Package fakechain is a chain for simulations in virtual time: blocks that are mined when somebody asks for it, a pool
// with the nodes' rules of nonces and prices, an exchange ([perpkeeper/lab/simulator/venue]), reorgs, and for each
// keeper a view of it all through an endpoint and a derived state of its own, which may lag, lie still or be away.
//
// # Guaranteed
//
//   - It starts no goroutine and no timer and reads no clock but the one it was given. It is safe for concurrent use.
//   - The same calls at the same times give the same answers. Within one moment their order does not matter, as long as
//     they are about different transactions: what is drawn by lot is drawn by the transaction's hash.
//   - A view is whole: head, nonces, receipts, rows and simulated calls of one endpoint are those of one block, on
//     whichever branch it stands.
//   - A block that was final stays.
//
// # As on BSC
//
// The base fee is zero and tip and cap are one price. A block takes the best paid of those transactions that are next
// for their accounts, within its gas limit; transactions of traders stand before those of keepers. Final is what lies a
// number of blocks below the head.
//
// # Simpler
//
// There is one pool: what an endpoint took reaches every miner after a while. Signatures are none, see [Signer]. The
// block's time is that of the moment it was mined at. A reorg takes place when the other branch has become the longer
// one, so that it comes with a new head.
package fakechain
