package bus

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"

	"perpkeeper/pkg/transport"
)

// dialTimeout bounds one attempt to open a connection, with its TLS and SASL exchange.
const dialTimeout = 5 * time.Second

// clientID is the name of this process in the brokers' logs and quotas.
const clientID = "perpkeeper"

// Client is the way to one Kafka cluster. It is safe for concurrent use; one per process is enough.
type Client struct {
	cfg     Config
	log     zerolog.Logger
	metrics *Metrics
	waiting waiting

	tls       *tls.Config
	sasl      sasl.Mechanism
	transport *kafka.Transport
	kafka     *kafka.Client
	wire      transport.Dialer // of all but the group's connections, on which a rebalance may last
}

// New checks the configuration and reads its certificate files. It does not connect: brokers may come up later.
func New(cfg Config, log zerolog.Logger, metrics *Metrics) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	boundCodecs()
	c := &Client{cfg: cfg, log: log, metrics: metrics}
	if err := c.secure(); err != nil {
		return nil, err
	}
	c.transport = c.newTransport()
	c.kafka = c.newKafka(c.transport)
	return c, nil
}

// secure prepares what the configuration asks for of encryption and authentication; nil fields mean none.
func (c *Client) secure() (err error) {
	if c.cfg.TLS.Enabled {
		if c.tls, err = c.cfg.TLS.config(); err != nil {
			return err
		}
	}
	if c.cfg.SASL.Mechanism != "" {
		if c.sasl, err = c.cfg.SASL.mechanism(); err != nil {
			return fmt.Errorf("sasl: %w", err)
		}
	}
	return nil
}

// Close drops the idle connections and stops watching the cluster. Calls that are under way finish.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Health returns nil, or an error that lists the calls that are at this moment trying again, and why: the brokers are
// away, or refuse. It is what readiness should ask.
func (c *Client) Health() error { return c.waiting.err() }

func (c *Client) newTransport() *kafka.Transport {
	return &kafka.Transport{
		Dial:        c.dial,
		DialTimeout: dialTimeout,
		MetadataTTL: c.cfg.MetadataTTL,
		ClientID:    clientID,
		TLS:         c.tls,
		SASL:        c.sasl,
	}
}

func (c *Client) newKafka(transport *kafka.Transport) *kafka.Client {
	return &kafka.Client{Addr: c.seeds(), Timeout: c.cfg.RequestTimeout, Transport: transport}
}

// seeds are the brokers of the configuration; any of them leads to the whole cluster.
func (c *Client) seeds() net.Addr { return kafka.TCP(c.cfg.Brokers...) }

// newDialer serves the group membership, which the library runs over connections of its own.
func (c *Client) newDialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: clientID, DialFunc: c.connect, Timeout: dialTimeout, TLS: c.tls,
		SASLMechanism: c.sasl}
}

// dial opens a connection that ends when it is mute: brokers answer whatever they are asked over it within seconds.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c.wire.Watch(conn, address), nil
}

func (c *Client) connect(ctx context.Context, network, address string) (net.Conn, error) {
	dial := c.cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, &dialError{err: err}
	}
	return conn, nil
}

// dialError marks that a request cannot have been sent, because there was no connection to send it over.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connecting: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }
