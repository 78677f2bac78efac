// Command ready tells whether a Kafka cluster does all that we need of one: every broker takes part, a batch is written
// to all copies and read back, and a group forms. It exits with 0 if so, and otherwise says what fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/kafka/bus"
)

// topic is written to at every check.
const topic = "ready"

func main() {
	brokers := flag.String("brokers", "127.0.0.1:19092", "addresses of all brokers, separated by commas")
	timeout := flag.Duration("timeout", 30*time.Second, "how long to wait")
	flag.Parse()
	if err := check(strings.Split(*brokers, ","), *timeout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(brokers []string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cfg := bus.DefaultConfig()
	cfg.Brokers = brokers
	c, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return err
	}
	defer c.Close()
	// As many copies as brokers: the topic can only be made, and the batch only written, when all are there.
	if err := c.Ensure(ctx, []bus.TopicSpec{{Name: topic, Partitions: 1, Replication: len(brokers)}}); err != nil {
		return err
	}
	base, err := c.Producer(topic).Produce(ctx, 0, []bus.Record{{Value: []byte("ready?")}})
	if err != nil {
		return err
	}
	if _, err := c.Reader(topic, 0, base).Next(ctx); err != nil {
		return err
	}
	return joins(ctx, c)
}

// joins returns nil once this process has been given a partition.
func joins(ctx context.Context, c *bus.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := errors.New("the group never formed")
	joinErr := c.Join(ctx, bus.GroupConfig{ID: topic, Topic: topic}, func(ctx context.Context, _ bus.Claim) error {
		err = nil
		cancel()
		return ctx.Err()
	})
	return errors.Join(joinErr, err)
}
