package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/transport/transporttest"
)

// A service of prices is asked again within five seconds, whatever has become of the connection to it.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (*transporttest.Relay, func() error) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "[]")
		}))
		t.Cleanup(s.Close)
		relay := transporttest.NewRelay(t, s.Listener.Addr().String())
		c := NewClient(secret.MustURL("http://"+relay.Addr()), 2*time.Second)
		t.Cleanup(c.Close)
		return relay, func() error {
			_, err := c.Get(t.Context(), nil)
			return err
		}
	})
}
