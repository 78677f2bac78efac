package evm_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"perpkeeper/pkg/setting/secret"
)

// startProxy serves a node's HTTP answers after a change.
func startProxy(t *testing.T, node string, change func(request, answer []byte) []byte) string {
	t.Helper()
	transport := &http.Transport{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		forward, err := http.NewRequestWithContext(r.Context(), http.MethodPost, node, bytes.NewReader(request))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		forward.Header.Set("Content-Type", "application/json")
		reply, err := transport.RoundTrip(forward)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer reply.Body.Close()
		answer, err := io.ReadAll(reply.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(change(request, answer))
	}))
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	return server.URL
}

func mustURL(text string) secret.URL { return secret.MustURL(text) }
