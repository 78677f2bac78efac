package bus

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"perpkeeper/pkg/setting/secret"
)

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.SessionTimeout != 6*time.Second || cfg.MetadataTTL != 500*time.Millisecond {
		t.Fatalf("take-over and leader moves are as slow as %+v", cfg)
	}
}

func TestValidateNamesTheProblem(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"brokers: is empty":                    func(c *Config) { c.Brokers = nil },
		`brokers: "kafka" is not host:port`:    func(c *Config) { c.Brokers = []string{"kafka"} },
		`brokers: ":9092" is not host:port`:    func(c *Config) { c.Brokers = []string{"a:1", ":9092"} },
		"session_timeout: 0s is not between":   func(c *Config) { c.SessionTimeout = 0 },
		"tls: has settings but is not enabled": func(c *Config) { c.TLS.CAFile = "ca.pem" },
		"cert_file and key_file go together":   func(c *Config) { c.TLS = TLS{Enabled: true, CertFile: "c.pem"} },
		"sasl.mechanism: \"kerberos\" is not": func(c *Config) {
			c.SASL = SASL{Mechanism: "kerberos", User: "u",
				Password: secret.New("p")}
		},
		"plain would send the password": func(c *Config) {
			c.SASL = SASL{Mechanism: "plain", User: "u",
				Password: secret.New("p")}
		},
		"user and password must both be set": func(c *Config) { c.SASL = SASL{Mechanism: "scram-sha-512", User: "u"} },
		"user or password but no mechanism":  func(c *Config) { c.SASL = SASL{User: "u"} },
	} {
		cfg := DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
	both := DefaultConfig()
	both.Brokers, both.SessionTimeout = nil, 0
	if err := both.Validate(); err == nil || !strings.Contains(err.Error(), "brokers") ||
		!strings.Contains(err.Error(), "session_timeout") {
		t.Errorf("not all problems are named: %v", err)
	}
}

// A certificate file that cannot be used is one clear line, at the start and not at the first connection.
func TestNewReadsCertificates(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, tls := range map[string]TLS{
		"tls.ca_file: open /does/not/exist": {Enabled: true, CAFile: "/does/not/exist"},
		"tls.ca_file: no certificate in":    {Enabled: true, CAFile: empty},
		"tls.cert_file, tls.key_file: ":     {Enabled: true, CertFile: empty, KeyFile: empty},
	} {
		cfg := DefaultConfig()
		cfg.TLS = tls
		if _, err := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry())); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}

// No configuration makes anything panic (the library's own reader and writer do): it is refused, or it works.
func TestNoConfigPanics(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	duration := rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
	sane := rapid.Map(rapid.Int64Range(0, int64(2*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Brokers = rapid.SliceOfN(rapid.SampledFrom([]string{"127.0.0.1:1", "", "x", "[::1]:1", "a:b:c"}), 0, 2).
			Draw(t, "brokers")
		cfg.SessionTimeout = rapid.OneOf(duration, sane).Draw(t, "session")
		c, err := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			return
		}
		defer c.Close()
		offset, partition := rapid.Int64().Draw(t, "offset"), rapid.Int().Draw(t, "partition")
		if _, err := c.Reader("t", partition, offset).Next(ended); err == nil {
			t.Fatal("read")
		}
		if _, err := c.Producer("t").Produce(ended, partition, valued("x")); err == nil {
			t.Fatal("written")
		}
		if err := c.Join(ended, GroupConfig{ID: "g", Topic: "t"}, nil); err != nil {
			t.Fatal(err)
		}
	})
}
