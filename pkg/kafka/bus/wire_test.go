package bus

import (
	"context"
	"net"
	"testing"
	"time"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/transport/transporttest"
)

// A batch is written, and records are read, within five seconds, whatever has become of the connections to the brokers;
// while they cannot be reached, Health says so.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (*transporttest.Relay, func() error) {
		b := embedded(t, broker.Config{})
		relay := transporttest.NewRelay(t, b.Addr())
		c := connect(t, b.Addrs(), func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, relay.Addr())
			}
		})
		topic := newTopic(t, c)
		return relay, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience-200*time.Millisecond)
			defer cancel()
			base, err := c.Producer(topic).Produce(ctx, 0, []Record{{Value: []byte("v")}})
			if err == nil {
				_, err = c.Reader(topic, 0, base).Next(ctx)
			}
			return err
		}
	})
}
