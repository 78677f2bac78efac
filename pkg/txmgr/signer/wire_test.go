package signer

import (
	"net/url"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport/transporttest"
)

// A remote signer signs again within five seconds, whatever has become of the connection to it. Over HTTP/2 a signature
// that is given up does not end it.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (relay *transporttest.Relay, ask func() error) {
		v := newVault(t)
		v.two = true
		s := v.open(func(c *Config) {
			at, err := url.Parse(c.RemoteURL.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			relay = transporttest.NewRelay(t, at.Host)
			at.Host = relay.Addr()
			c.RemoteURL, c.RemoteTimeout = secret.MustURL(at.String()), 4500*time.Millisecond
		})
		return relay, func() error {
			_, _, err := s.Sign(t.Context(), someTx())
			return err
		}
	})
}
