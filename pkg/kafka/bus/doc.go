// Package bus is the client of Kafka: the only package that names the Kafka client library.
//
// A Client talks to one cluster. From it come Producers (one topic, atomic idempotent batches), Readers (one partition,
// from an explicit offset) and group membership (which partitions are mine), and the few questions a service asks about
// topics and offsets.
//
// # Guaranteed
//
//   - A call to Produce writes its records as one batch: all of them, next to each other and in order, or none.
//   - A batch is in its partition once, however often its reply was lost, its leader moved or the broker restarted, as
//     long as Produce returned nil. Retries repeat the same bytes under the same producer id and sequence, one batch in
//     flight per partition.
//   - Produce never turns "unknown" into "failed": when it cannot tell whether the batch was written it says so
//     (OutcomeUnknown), and the Producer accepts nothing more. The caller reads the partition's tail and goes on with a
//     new Producer.
//   - A Producer whose batch comes to stand below its batch before says so (LostLog) and accepts nothing more:
//     brokers may take the sequence of a producer they do not know, also into a topic that was deleted and made anew.
//   - A Reader delivers every offset from its start in order, each once. Where the log has a hole, or the start is not
//     in the log, it stops with an error; it never skips, and never starts elsewhere on its own.
//   - Brokers that are down are waited for, without end, until the call's context ends. Health reports meanwhile that
//     calls are waiting.
//   - A claim's context ends before this member joins the next generation, and the next generation waits for the
//     claim's handler.
//   - Nothing here creates a topic, except Ensure.
//
// # Not guaranteed
//
//   - After OutcomeUnknown the batch may still arrive, later than the caller's look at the tail: it can sit in a
//     broker's queue. Whoever goes on must write something first that outranks it (the scanner claims a new epoch).
//   - Two members can believe in the same partition for a moment: a paused process learns late that its claim has
//     ended. Exclusivity is the database's fence, not the group's.
//   - A broker remembers a producer for a limited time (a day, by default). Produce gives up on an unclear batch after
//     an hour, so the broker must remember for longer than that. The embedded broker forgets sequences when its process
//     is killed.
//   - Record times are the clock of the process that wrote them.
//   - No Kafka transactions: a transactional or control batch in a partition stops its Reader.
package bus
