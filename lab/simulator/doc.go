// Package simulator runs several keepers in simulated time: the real planner and the real sender of each, over stores
// in memory and a fake chain, from one seed.
//
// A [Scenario] sets how many keepers there are, which jobs come into the world, what goes wrong when and where, and
// what must come of it. [Run] plays it: a single goroutine takes one event after the other from a queue (a block, a
// head that reaches a keeper, a price report, a pass that is due, a fault that begins) and moves the time to it. Nobody
// sleeps, and ten thousand jobs take seconds.
//
// What is real: the planner's book, price indexes, verdicts and due times; the sender's queue, gate, turns, evidence,
// claims, confirmations, fees, retries and records; leases, fences, nonces; the decoding of the logs by which a keeper
// learns who executed what. What is simulated: blocks and the transaction pool, the venue's contracts (by their
// observable behaviour), Postgres, Kafka, nodes' answers, and how long each takes to reach whom.
//
// # Guaranteed
//
// The same scenario and seed give the same transcript, to the letter. Every run, whatever it expects, fails where a job
// was executed twice on the branch that stayed, or before it was due.
//
// # Not guaranteed
//
// Answers of nodes and databases come at once or not at all: a pass takes no simulated time, so that processor and
// database latencies are no part of the ages measured here; those of heads, logs, reports and transactions are. Block
// times are a clock's; gas is the measured cost of the original contracts.
package simulator
