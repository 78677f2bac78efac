package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

func (t TLS) validate() error {
	if !t.Enabled {
		if t != (TLS{}) {
			return errors.New("tls: has settings but is not enabled (set tls.enabled, or remove them)")
		}
		return nil
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("tls: cert_file and key_file go together (set both or none)")
	}
	return nil
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca_file: no certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file, tls.key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

const (
	mechanismPlain       = "plain"
	mechanismScramSHA256 = "scram-sha-256"
	mechanismScramSHA512 = "scram-sha-512"
)

func (s SASL) validate(encrypted bool) error {
	var problems []error
	switch strings.ToLower(s.Mechanism) {
	case "":
		if s != (SASL{}) {
			return errors.New("sasl: has a user or password but no mechanism (set sasl.mechanism, or remove them)")
		}
		return nil
	case mechanismPlain:
		if !encrypted {
			problems = append(problems, errors.New("sasl.mechanism: plain would send the password readably (set "+
				"tls.enabled, or use scram-sha-512)"))
		}
	case mechanismScramSHA256, mechanismScramSHA512:
	default:
		problems = append(problems, fmt.Errorf("sasl.mechanism: %q is not one of plain, scram-sha-256, scram-sha-512",
			s.Mechanism))
	}
	if s.User == "" || !s.Password.IsSet() {
		problems = append(problems, errors.New("sasl: user and password must both be set"))
	}
	return errors.Join(problems...)
}

// mechanism returns the mechanism that validate has let pass.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	switch strings.ToLower(s.Mechanism) {
	case mechanismScramSHA256:
		return scram.Mechanism(scram.SHA256, s.User, s.Password.Reveal())
	case mechanismScramSHA512:
		return scram.Mechanism(scram.SHA512, s.User, s.Password.Reveal())
	default:
		return plain.Mechanism{Username: s.User, Password: s.Password.Reveal()}, nil
	}
}
