// Package execution finds who executed what, by the chain's records alone: the logs that end orders and requests and
// close positions, and the transactions that carried them. No log names the account that sent its transaction; the
// transaction's own record does.
//
// [Endings] reads one transaction. [Fold] joins the partitions of a log topic: a log stands in the partition of its
// account or market, the record of its transaction in another, so neither alone shows who did what. It takes each
// partition as it comes, at its own pace, and returns the executions of a block once all partitions have it, in the
// chain's order.
//
// # Guaranteed
//
// An execution is returned once for a block (number and hash), however often its records are read; those of a branch
// come in the order of their logs. A block that was taken back before all partitions had it is left out.
//
// # Not guaranteed
//
// Finality. Executions are returned at once, and a block may be taken back afterwards: its executions are not revoked,
// and those of the block in its place are returned as well.
//
// An execution is a fact about the chain, not about keepers: whoever cancels an order of his own "executed" it here.
// Which of the senders are keepers, and whose, is known to the caller.
package execution
