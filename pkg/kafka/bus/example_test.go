package bus_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/bus"
)

// One process writes an atomic batch; a member of a group reads the partition that it was given, from where its own
// store says.
func Example() {
	b, err := broker.Start(broker.Config{})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	cfg := bus.DefaultConfig()
	cfg.Brokers = b.Addrs()
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := client.Ensure(ctx, []bus.TopicSpec{{Name: "log", Partitions: 1}}); err != nil {
		panic(err)
	}

	producer := client.Producer("log")
	if _, err := producer.Produce(ctx, 0,
		[]bus.Record{{Value: []byte("first")}, {Value: []byte("second")}}); err != nil {
		panic(err) // bus.OutcomeUnknown(err): read the tail, then go on with a new producer
	}

	stored := int64(0)
	err = client.Join(ctx, bus.GroupConfig{ID: "readers", Topic: "log"},
		func(ctx context.Context, claim bus.Claim) error {
			reader := client.Reader("log", claim.Partition, stored)
			for {
				record, err := reader.Next(ctx)
				if err != nil {
					return err
				}
				fmt.Printf("%d: %s\n", record.Offset, record.Value)
				stored = record.Offset + 1
				if stored == 2 {
					cancel()
				}
			}
		})
	fmt.Println(err)
	// Output:
	// 0: first
	// 1: second
	// <nil>
}
