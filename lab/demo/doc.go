// Package demo runs complete keepers on embedded parts, as processes: one devnet, and for each keeper a Kafka-protocol
// broker with its data directory, a throw-away Postgres, and scanner, statevm, planner and sender exactly as an
// operator runs them. Keepers share the chain and nothing else. Tests of the whole pipeline start the same [Stack] and
// then kill, double, pause and reorganise it.
//
// Processes that end unasked are started again, as a container runtime would. Everything listens on the loopback
// interface and lives in one directory that is removed at the end.
package demo
