// Package pg is PostgreSQL: every line of SQL of the project, and the only package that names the driver.
//
// A database belongs to one keeper. Schema keeper holds what is not derived from the chain (generations, leases,
// nonces, intents). Schema state_g<N> holds generation N of what is derived from it: one table per perp.Table, the
// offset up to which each partition of the log topic has been applied, and the journal that takes blocks back.
//
// The package itself holds what all of it stands on, the derived state, and what reads over both. What the sender does
// stands in a package of its own below it, txstore. It runs registered statements on the pool; nobody above may.
//
// # Guaranteed
//
//   - State, journal and offset of a partition change in one transaction ([Partition.Commit], [Partition.Undo]); a
//     process that is no longer the partition's owner writes nothing.
//   - A commit whose reply was lost is looked up, never repeated blindly.
//   - Undo restores every column of every row as it was, down to the bytes.
//   - A [Snapshot] is one REPEATABLE READ view of offsets and rows of one generation, as of the highest block that all
//     partitions have applied.
//   - Whoever follows by revision ([DB.Changes]) holds what a snapshot would hold, over commits, undos, switches of
//     generation and a database that lost its last commits, or is made to begin anew.
//   - A switch of generations is one row; without a reason it happens only when both hold the same rows at the same
//     offsets ([DB.Switch]).
//   - Not found and "could not ask" are different answers everywhere.
//
// # Not guaranteed
//
//   - Notifications of changes may be lost with their connection; [Listener] polls as well.
//   - Nothing here retries: how long to wait for a database that is down is the caller's policy.
//
// Rows travel as arrays in the server's binary form, one per column (see rowSet), and are kept in columns that people
// can read. The journal holds the same bytes row by row, so that an undo writes them back without understanding them.
//
// Statements are registered (see [Register]), so that a test can prepare every one of them against the migrated schema.
package pg
