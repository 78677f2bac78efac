package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"perpkeeper/pkg/setting/secret"
)

// A broker that wants TLS, a client certificate and a password gets them on every kind of connection; each that is
// missing or wrong is refused.
func TestTLSAndSASL(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t, dir)
	server := authority.issue(t, "server")
	authority.issue(t, "client")
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server), kfake.EnableSASL(),
				kfake.Superuser(strings.ToUpper(mechanism), "keeper", "hunter2"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			good := func(c *Config) {
				c.TLS = TLS{Enabled: true, CAFile: authority.path("ca.pem"), CertFile: authority.path("client.pem"),
					KeyFile: authority.path("client.key")}
				c.SASL = SASL{Mechanism: mechanism, User: "keeper", Password: secret.New("hunter2")}
			}
			works(t, connect(t, cluster.ListenAddrs(), good))
			for name, spoil := range map[string]func(*Config){
				"wrong password": func(c *Config) { c.SASL.Password = secret.New("hunter3") },
				"no certificate": func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = "", "" },
				"no authority":   func(c *Config) { c.TLS.CAFile = "" },
				"wrong name":     func(c *Config) { c.TLS.ServerName = "elsewhere" },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				_, err := connect(t, cluster.ListenAddrs(), good, spoil).Describe(ctx, "topic")
				cancel()
				if err == nil || NoTopic(err) || strings.Contains(err.Error(), "hunter") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// works uses the connections of producer, reader and group.
func works(t *testing.T, c *Client) {
	t.Helper()
	topic := newTopic(t, c)
	produce(t, c.Producer(topic), "0")
	wantLog(t, c, topic, "0")
	ctx, cancel := context.WithCancel(guarded(t))
	claimed := false
	err := c.Join(ctx, GroupConfig{ID: topic, Topic: topic},
		func(context.Context, Claim) error { claimed = true; cancel(); return nil })
	if err != nil || !claimed {
		t.Fatalf("claimed: %t, %v", claimed, err)
	}
}

// authority signs certificates for 127.0.0.1.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	var raw []byte
	a.key, raw = a.sign(t, a.cert)
	a.write(t, "ca.pem", "CERTIFICATE", raw)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name.key and returns a server's configuration that demands certificates of this authority.
func (a *authority) issue(t *testing.T, name string) *tls.Config {
	t.Helper()
	key, raw := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", raw)
	a.write(t, name+".key", "EC PRIVATE KEY", der)
	pair, err := tls.LoadX509KeyPair(a.path(name+".pem"), a.path(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(a.read(t, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert}
}

// sign makes a key and a certificate for it, signed by the authority's key or, for the authority itself, by its own.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, raw
}

func (a *authority) write(t *testing.T, name, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(a.path(name))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	return block.Bytes
}
