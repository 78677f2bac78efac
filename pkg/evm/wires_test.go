package evm

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
	"perpkeeper/pkg/transport/transporttest"
)

// wired is three nodes behind relays, which are spoken to in one way.
type wired struct {
	*Client
	relays []*transporttest.Relay
}

func wire(t *testing.T, way string) *wired {
	t.Helper()
	nodes, _ := fakes(3, 40)
	cfg := DefaultConfig()
	cfg.URLs = nil
	w, roots := &wired{}, x509.NewCertPool()
	for _, node := range nodes {
		var server *httptest.Server
		switch way {
		case "ws":
			server = startPusher(t, node).Server
		default:
			server = httptest.NewUnstartedServer(node)
			server.EnableHTTP2 = way == "h2"
			server.StartTLS()
			roots.AddCert(server.Certificate())
			t.Cleanup(server.Close)
		}
		at, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		relay := transporttest.NewRelay(t, at.Host)
		at.Host = relay.Addr()
		if way == "ws" {
			at.Scheme = "ws"
		}
		w.relays = append(w.relays, relay)
		cfg.URLs = append(cfg.URLs, secret.MustURL(at.String()))
	}
	over := transport.HTTP(cfg.RequestTimeout)
	over.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if way == "http" {
		over.HTTP2, over.ForceAttemptHTTP2 = nil, false
		over.Protocols = new(http.Protocols)
		over.Protocols.SetHTTP1(true)
	}
	var err error
	if w.Client, err = dial(t.Context(), fakeChainID, cfg, zerolog.Nop(), newMetricsForTest(), over); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Nodes whose connections were forgotten by what stands between answer again within five seconds, in whichever way they
// are spoken to; what cuts a connection is met by the next one at once.
func TestAllConnectionsFrozen(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"http", "h2", "ws"} {
		for what, fault := range map[string]func(*transporttest.Relay){
			"frozen": (*transporttest.Relay).Freeze, "cut": (*transporttest.Relay).Cut,
		} {
			t.Run(way+" "+what, func(t *testing.T) {
				t.Parallel()
				w := wire(t, way)
				for _, r := range w.relays {
					fault(r)
				}
				begun := time.Now()
				for _, err := w.Head(t.Context()); err != nil; _, err = w.Head(t.Context()) {
					if t.Context().Err() != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(begun); took > 5500*time.Millisecond {
					t.Errorf("it took %s", took)
				}
				if err := w.Health(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Nodes that take every byte and say nothing, or let nobody in, are named.
func TestMuteAndRefusingNodes(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"http", "h2", "ws"} {
		for what, fault := range map[string]func(*transporttest.Relay, bool){
			"mute": (*transporttest.Relay).Mute, "refusing": (*transporttest.Relay).Refuse,
		} {
			t.Run(way+" "+what, func(t *testing.T) {
				t.Parallel()
				w := wire(t, way)
				for _, r := range w.relays {
					fault(r, true)
				}
				begun := time.Now()
				_, err := w.Head(t.Context())
				if took := time.Since(begun); err == nil || took > 5500*time.Millisecond {
					t.Errorf("after %s: %v", took, err)
				}
				if w.Health() == nil {
					t.Error("it is well")
				}
				for _, r := range w.relays {
					fault(r, false)
				}
				for _, err := w.Head(t.Context()); err != nil; _, err = w.Head(t.Context()) {
					if t.Context().Err() != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
