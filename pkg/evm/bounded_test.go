package evm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// packedAnswer is a gzip of an answer with so many bytes of result.
func packedAnswer(t *testing.T, id json.RawMessage, size int) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":"0x%s"}`, id, strings.Repeat("0", size))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// An answer of some kilobytes on the wire that unpacks to more than a call can return is given up, and is no answer.
func TestAnswersAreBoundedAfterUnpacking(t *testing.T) {
	size := longestAnswer / 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &q)
		w.Header().Set("Content-Type", "application/json")
		if q.Method != methodCall {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x38"}`, q.ID)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packedAnswer(t, q.ID, size))
	}))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(server.URL)}
	c, err := Dial(t.Context(), fakeChainID, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func() error {
		_, err := c.Simulate(t.Context(), chain.Address{1}, chain.Address{2}, nil, 1, chain.Uint{})
		return err
	}
	if err := call(); err != nil {
		t.Errorf("an answer within the limit: %v", err)
	}
	size = longestAnswer + 1
	if err := call(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an answer above the limit: %v", err)
	}
}
