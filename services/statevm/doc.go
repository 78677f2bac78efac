// Package statevm turns the log topic into rows: it reads the partitions that its consumer group assigns to it, checks and decodes every
// block, folds it into the state of the exchange, and commits rows and offset in one transaction. Reorgs are undone.
//
// # Guaranteed
//
//   - Exactly-once effect (PIPE-3): wherever the process is killed, the rows are those of a fold over the topic up to the stored offset.
//   - The apply rule: a block that is the child of the last one is applied; one that is known is skipped; a reorg takes blocks back once. Anything
//     else halts the partition: a hole, another branch without a reorg, a batch that is not what its BLOCK_END says, an unknown record or event, an
//     event that contradicts the rows, a block that contradicts finality.
//   - A partition that was halted has committed everything before the record it cannot accept, and nothing of it.
//   - Two instances share the partitions (PIPE-7). One that lost a partition without knowing writes nothing.
//
// A halted partition stays halted, and the process stays up: the other partitions go on, readiness is false and says which record and why,
// statevm_halted is 1. Exiting would only make a supervisor restart it into the same record, disturbing the other partitions each time. Whoever owns
// the partition next (after a restart with a build that understands the record) tries again.
//
// Kafka or Postgres being away is no reason to halt or to exit: both are waited for, and readiness says for what.
package statevm
