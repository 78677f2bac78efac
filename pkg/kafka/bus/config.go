package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// Config is how to reach a Kafka cluster, and how long to wait for it. Start from DefaultConfig.
type Config struct {
	Brokers []string `toml:"brokers" help:"addresses of some of the cluster's brokers, host:port"`
	TLS     TLS      `toml:"tls"`
	SASL    SASL     `toml:"sasl"`

	// SessionTimeout is how long a group waits for a member that went silent before its partitions move.
	SessionTimeout time.Duration `toml:"session_timeout" help:"how long the group waits for a silent member before its partitions move"`
	// MetadataTTL is how old the knowledge of partition leaders may be; a leader move stalls a call about as long.
	MetadataTTL time.Duration `toml:"-"`
	// RequestTimeout is how long one request may take before it is tried again.
	RequestTimeout time.Duration `toml:"-"`
	// MaxBytes bounds everything that has a size: a batch to be written, as it is before compression, and so what of it
	// the brokers and readers hold; about what an answer to a fetch unpacks to; max.message.bytes of topics made by
	// Ensure.
	MaxBytes int `toml:"-"`

	// Dial opens connections in place of a net.Dialer. It is how tests cut them.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `toml:"-"`
}

// TLS is whether and how connections are encrypted.
type TLS struct {
	Enabled  bool   `toml:"enabled" help:"encrypt connections to the brokers"`
	CAFile   string `toml:"ca_file" help:"PEM file of the authority that signed the brokers' certificates; empty = the system's"`
	CertFile string `toml:"cert_file" help:"PEM file of this client's certificate, where brokers ask for one"`
	KeyFile  string `toml:"key_file" help:"PEM file of the key to cert_file"`
	// ServerName: name expected in the brokers' certificates; empty = the host of their address.
	ServerName string `toml:"-"`
}

// SASL is how this client authenticates.
type SASL struct {
	Mechanism string        `toml:"mechanism" help:"plain, scram-sha-256 or scram-sha-512; empty = no authentication"`
	User      string        `toml:"user" help:"user name"`
	Password  secret.String `toml:"password" help:"password"`
}

// maxMaxBytes bounds Config.MaxBytes. It stays below what brokers take as one request by default (100 MiB).
const maxMaxBytes = 64 << 20

// DefaultConfig is a broker on this machine, groups that notice a dead member after 6 s (the least brokers allow by
// default), and messages of up to 10 MiB.
func DefaultConfig() Config {
	return Config{
		Brokers:        []string{"127.0.0.1:9092"},
		SessionTimeout: 6 * time.Second,
		MetadataTTL:    500 * time.Millisecond,
		RequestTimeout: 10 * time.Second,
		MaxBytes:       10 << 20,
	}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	return errors.Join(c.validateBrokers(), c.validateTimes(),
		c.TLS.validate(), c.SASL.validate(c.TLS.Enabled))
}

func (c Config) validateBrokers() error {
	if len(c.Brokers) == 0 {
		return errors.New("brokers: is empty (name at least one host:port)")
	}
	var problems []error
	for _, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			problems = append(problems, fmt.Errorf("brokers: %q is not host:port", b))
		}
	}
	return errors.Join(problems...)
}

func (c Config) validateTimes() error {
	between := func(key string, d time.Duration) error { return check.Between(key, d, time.Millisecond, time.Hour) }
	return between("session_timeout", c.SessionTimeout)
}
