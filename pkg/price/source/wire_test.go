package source

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport/transporttest"
)

// A service of prices is asked again within five seconds, whatever has become of the connection to it. Over HTTP/2 a
// question that is given up does not end it.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (*transporttest.Relay, func() error) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "[]")
		}))
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		relay := transporttest.NewRelay(t, s.Listener.Addr().String())
		c := NewClient(secret.MustURL("https://"+relay.Addr()), 2*time.Second)
		c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		t.Cleanup(c.Close)
		return relay, func() error {
			_, err := c.Get(t.Context(), nil)
			return err
		}
	})
}
