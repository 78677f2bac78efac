package bus_test

import (
	"testing"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus/bustest"
)

// The suite on the embedded broker, as a cluster of three. Crashing it is left out: it forgets producers' sequences
// when it is killed.
func TestConformance(t *testing.T) {
	cfg := broker.Config{DataDir: t.TempDir(), Listen: []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}}
	b := start(t, cfg)
	t.Cleanup(func() { b.Close() })
	cfg.Listen = b.Addrs()
	leader := 0
	bustest.Run(t, bustest.Cluster{
		Brokers:     cfg.Listen,
		Replication: 3,
		Stop:        func(testing.TB) { b.Close() },
		Start:       func(t testing.TB) { b = start(t, cfg) },
		MoveLeader: func(t testing.TB, topic string, partition int) {
			leader = (leader + 1) % len(cfg.Listen)
			if err := b.MoveTopicPartition(topic, partition, leader); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func start(t testing.TB, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
