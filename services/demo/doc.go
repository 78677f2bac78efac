// Package demo runs a whole keeper on embedded parts, as processes: the devnet, a Kafka-protocol broker with its data directory, a throw-away Postgres, and
// scanner, statevm, planner and sender exactly as an operator runs them. Tests of the whole pipeline start the same [Stack] and then kill,
// double, pause and reorganise it.
//
// Processes that end unasked are started again, as a container runtime would. Everything listens on the loopback interface and lives in one directory that
// is removed at the end.
package demo
