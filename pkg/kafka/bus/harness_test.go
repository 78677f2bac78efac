package bus

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
)

// guarded ends a test that would otherwise wait for ever.
func guarded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func embedded(t testing.TB, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// addresses are those of KAFKA_BROKERS or of a new embedded broker, for tests that both can pass.
func addresses(t testing.TB) []string {
	if cluster := os.Getenv("KAFKA_BROKERS"); cluster != "" {
		return strings.Split(cluster, ",")
	}
	return embedded(t, broker.Config{}).Addrs()
}

func connect(t testing.TB, brokers []string, adjust ...func(*Config)) *Client {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Brokers = brokers
	for _, a := range adjust {
		a(&cfg)
	}
	c, err := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newTopic makes a topic of one partition that nobody else uses.
func newTopic(t testing.TB, c *Client) string {
	t.Helper()
	name := fmt.Sprintf("%s.%d", strings.ToLower(strings.Map(nameable, t.Name())), time.Now().UnixNano())
	if err := c.Ensure(guarded(t), []TopicSpec{{Name: name, Partitions: 1}}); err != nil {
		t.Fatal(err)
	}
	return name
}

func nameable(r rune) rune {
	if r == '/' || r == ' ' {
		return '-'
	}
	return r
}

func produce(t testing.TB, p *Producer, values ...string) {
	t.Helper()
	if _, err := p.Produce(guarded(t), 0, valued(values...)); err != nil {
		t.Fatal(err)
	}
}

func valued(values ...string) []Record {
	records := make([]Record, len(values))
	for i, v := range values {
		records[i].Value = []byte(v)
	}
	return records
}

// wantLog checks a whole partition.
func wantLog(t testing.TB, c *Client, topic string, want ...string) {
	t.Helper()
	_, end, err := c.Bounds(guarded(t), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := c.Reader(topic, 0, 0); r.Offset() < end; {
		record, err := r.Next(guarded(t))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(record.Value))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("the log is %v, want %v", got, want)
	}
}
