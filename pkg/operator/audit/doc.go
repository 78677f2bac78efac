// Package audit reads from the chain alone who executed which jobs of an exchange: blocks, receipts and calldata, no
// keeper's database and no topic. What it reads goes to the books of package ledger, which compute.
//
// # Guaranteed
//
// The blocks of a range are read once each, in order, every one the child of the one before: a chain that changes
// meanwhile is an error, and not a sum over two branches. Receipts are checked against their block's root, calldata
// against its transaction's hash. What cannot be proven or understood (an event that no build knows) is an error;
// nothing is left out silently.
//
// # Not guaranteed
//
// Blocks above the finalized one may be replaced afterwards. Keepers' calls through contracts of their own are seen
// where they succeed, by their logs, and not where they revert. That an endpoint leaves no reverted transaction of a
// keeper out is its word alone.
package audit
