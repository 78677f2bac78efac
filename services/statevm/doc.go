// Package statevm turns the log topic into rows: it reads the partitions that its consumer group assigns to it, checks
// and decodes every block, folds it into the state of the exchange, and commits rows and offset in one transaction.
// Reorgs are undone.
//
// # Guaranteed
//
//   - Exactly-once effect (PIPE-3): wherever the process is killed, the rows are those of a fold over the topic up to
//     the stored offset.
//   - The apply rule: what stands on the last block is applied, be it a block or a range; what is known is skipped; a
//     reorg takes blocks back once. Anything else halts the partition: a hole, another branch without a reorg, a batch
//     that does not match its end, an unknown record or event, an event that contradicts the rows, a block that
//     contradicts finality.
//   - A partition that was halted has committed everything before the record it cannot accept, and nothing of it. A
//     record or log that cannot be decoded stands in the dead letter topic as well.
//   - Two instances share the partitions (PIPE-7). One that lost a partition without knowing writes nothing.
//   - Every block within the undo horizon keeps its journal, however final it is when it is applied: the operator may
//     accept a reorg of it, and a replay of the topic meets that again. Only ranges have none.
//
// # A topic that lost its end
//
// Rows may be ahead of the topic after brokers have lost its last records. That is found out by the record before the
// offset, and is no halt: the rows go back to what the topic still has, and follow what the scanner writes again. Rows
// of another topic altogether halt the partition.
//
// # Halts
//
// A halted partition stays halted, and the process stays up: the other partitions go on, readiness is false and shows
// which record and why, statevm_halted is 1. Exiting would only make a supervisor restart it into the same record,
// disturbing the other partitions each time. Whoever owns the partition next (after a restart with a build that
// understands the record) tries again.
//
// Broken finality is more than that: nobody may act on the state. The reason is written beside the offset, where
// planner and sender see it. When the scanner has found it out (a HALT record), reading goes on, and the reorg that the
// operator accepts lifts it. When the topic contradicts itself, the partition halts at the record.
//
// Kafka or Postgres being away is no reason to halt or to exit: both are waited for, and readiness shows for what.
//
// # Generations
//
// The active generation is kept up to date, and every other one that is marked: one that is being filled (PIPE-8), and
// the one that was active before, for the way back. Each has a consumer group of its own, so that all instances share
// the work on each. Readiness speaks of the active one only.
//
// # Speed
//
// Reading and decoding run ahead of the commit, up to a bound. What is ready when a commit ends becomes the next one,
// so steps are single blocks at the head and thousands of records when behind; a row touched by many blocks of a step
// is written once. The rows of small tables that folding reads (perp.Table.Resident) stay in memory, and come anew from
// the database after everything that is not a plain commit.
package statevm
