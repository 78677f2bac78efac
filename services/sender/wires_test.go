package sender

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport/transporttest"
)

// PIPE-14: all three endpoints are spoken to over HTTP/2, and what stands between forgets the present connections:
// bytes are taken and go nowhere. The keeper executes again within six seconds.
func TestAllEndpointsFrozen(t *testing.T) {
	s := newSite(t)
	node, err := url.Parse(s.RPC())
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Chain.URLs = nil
	var relays []*transporttest.Relay
	for range 3 {
		server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(node))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		trust(t, server)
		relay := transporttest.NewRelay(t, server.Listener.Addr().String())
		relays = append(relays, relay)
		s.cfg.Chain.URLs = append(s.cfg.Chain.URLs, secret.MustURL("https://"+relay.Addr()))
	}
	by, key := s.keeper(0)
	s.sender([]secret.String{key})
	start := s.nonce(by)
	first := s.orderJob(s.marketOrder(100), by)
	s.say(first)
	s.mustEndOnce(first, by, start)

	next := s.orderJob(s.marketOrder(100), by)
	for _, r := range relays {
		r.Freeze()
	}
	begun := time.Now()
	s.say(next)
	for s.nonce(by) == start+1 && time.Since(begun) < time.Minute {
		time.Sleep(20 * time.Millisecond) // it is measured
	}
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("executed again after %s", took)
	} else {
		t.Logf("executed again after %s", took)
	}
	s.mustEndOnce(next, by, start+1)
}

// trust has this process take a server's certificate for one of the machine's authorities.
func trust(t *testing.T, s *httptest.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
}
