// Package e2e proves the whole pipeline as an operator runs it: the real programs as processes, on an in-process chain,
// a Kafka broker and a real Postgres, killed, doubled, paused, reorganised and misconfigured.
//
// The main road runs with every `make test`. The longer scenarios need KEEPER_E2E=1 (`make e2e`). KAFKA_BROKERS puts
// them on a Kafka cluster that runs already (`make test-kafka`).
package e2e
