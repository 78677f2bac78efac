package notify

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
	"perpkeeper/pkg/transport/transporttest"
)

// A chat is reached again within five seconds, whatever has become of the connection to it.
func TestWire(t *testing.T) {
	t.Parallel()
	transporttest.Wire(t, func(t *testing.T) (*transporttest.Relay, func() error) {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		relay := transporttest.NewRelay(t, s.Listener.Addr().String())
		h, to := NewHTTP(transport.Mute), secret.MustURL("http://"+relay.Addr())
		t.Cleanup(h.client.CloseIdleConnections)
		return relay, func() error { return h.Post(t.Context(), to, nil, nil) }
	})
}
