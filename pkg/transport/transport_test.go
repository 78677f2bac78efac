package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/transport/transporttest"
)

// server answers over HTTP/1 or HTTP/2 behind a relay, and holds what is asked for /slow until the test ends.
type server struct {
	*transporttest.Relay
	client *http.Client
	url    string
}

func serve(t *testing.T, two bool) server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-time.After(Mute + time.Second): // it works
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = two
	s.StartTLS()
	t.Cleanup(s.CloseClientConnections)
	relay := transporttest.NewRelay(t, s.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	// Over HTTP/2, where an answer may take a minute, pings alone find out that a connection is dead.
	wire := HTTP(map[bool]time.Duration{true: time.Minute}[two])
	wire.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if !two {
		wire.HTTP2, wire.ForceAttemptHTTP2 = nil, false
	}
	t.Cleanup(wire.CloseIdleConnections)
	return server{relay, &http.Client{Transport: wire}, "https://" + relay.Addr()}
}

func (s server) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// Whatever a box between forgets, one question later and within five seconds the wire works again, and a server that is
// away is known at once.
func TestDeadConnectionsAreLeft(t *testing.T) {
	t.Parallel()
	for proto, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			s := serve(t, two)
			s.crowd(t, 8)
			s.Freeze()
			begun := time.Now()
			failed := 0
			for {
				got, err := s.get(t.Context(), "/")
				if err == nil {
					if got != proto {
						t.Errorf("it was %s", got)
					}
					break
				}
				if failed++; failed > 2 {
					t.Fatalf("the third question in a row failed: %v", err)
				}
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
		t.Run("mute "+proto, func(t *testing.T) {
			t.Parallel()
			s := serve(t, two)
			s.Mute(true)
			begun := time.Now()
			if _, err := s.get(t.Context(), "/"); err == nil || time.Since(begun) > 5*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
			s.Mute(false)
			if _, err := s.get(t.Context(), "/"); err != nil {
				t.Error(err)
			}
		})
		t.Run("refused "+proto, func(t *testing.T) {
			t.Parallel()
			s := serve(t, two)
			s.crowd(t, 1)
			s.Refuse(true)
			begun := time.Now()
			if _, err := s.get(t.Context(), "/"); err == nil || time.Since(begun) > time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	}
}

// crowd opens so many connections, which are idle afterwards.
func (s server) crowd(t *testing.T, connections int) {
	t.Helper()
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			if _, err := s.get(t.Context(), "/"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Over HTTP/2 a slow answer is none of a dead connection.
func TestSlowAnswersAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	if _, err := s.get(t.Context(), "/slow"); err != nil {
		t.Error(err)
	}
}

// Who is confirmed to be at work is waited for, and given up when he is not any more.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	d := &Dialer{Patience: 20 * time.Millisecond}
	c := d.Watch(here, "there")
	asked := 0
	c.Confirm(func(context.Context) bool { asked++; return asked < 3 })
	if _, err := c.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || asked != 3 {
		t.Errorf("after %d confirmations: %v", asked, err)
	}
}

// A connection is given up only for a question of its own: one of which nobody asks anything rests.
func TestIdleConnectionsRest(t *testing.T) {
	t.Parallel()
	one, peer := net.Pipe()
	go func() { _, _ = io.Copy(peer, peer) }() // an echo
	d := &Dialer{Patience: 20 * time.Millisecond}
	c := d.Watch(one, "peer")
	for range 3 {
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		c.look() // as the timer does
	}
	d.closeIdle("elsewhere", time.Now())
	if _, err := c.Write([]byte("?")); err != nil {
		t.Errorf("another address's fault: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	d.closeIdle("peer", time.Now())
	if _, err := c.Write([]byte("?")); err == nil {
		t.Error("what has said nothing since was kept")
	}
	if len(d.open) != 0 {
		t.Errorf("%d connections are listed", len(d.open))
	}
}
