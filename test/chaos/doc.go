// Package chaos proves that killing, freezing and doubling scanner and statevm loses nothing and doubles nothing
// (PIPE-2, PIPE-3). They run as processes; the chain, its traders, the broker and the observer are parts of the test,
// so that a death costs seconds and many can be tried. Nodes that lie are tried in services/scanner and test/liars.
//
// After everything that is done to them, every table must be equal to a pure fold of the canonical chain, made from the
// chain's proven receipts alone.
//
// KEEPER_LONG=1 runs all of it, with KEEPER_KILLS deaths (default: one at each point); KEEPER_SEED repeats a run as far
// as its timing can be; KAFKA_BROKERS puts it on a Kafka cluster that runs already.
package chaos
