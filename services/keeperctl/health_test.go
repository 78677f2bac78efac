package keeperctl

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	status, body := http.StatusOK, "ok\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	ask := func() (code int, stderr string) {
		var out, complaints bytes.Buffer
		code = Run(t.Context(), []string{"health", "--url", server.URL}, IO{Out: &out, Err: &complaints})
		return code, complaints.String()
	}
	if code, complaint := ask(); code != 0 {
		t.Errorf("ready: exit code %d, %s", code, complaint)
	}
	status, body = http.StatusServiceUnavailable, "kafka: connection refused\n"
	if code, complaint := ask(); code != 1 || !strings.Contains(complaint, "kafka: connection refused") ||
		strings.Count(complaint, "\n") != 1 {
		t.Errorf("not ready: exit code %d, %q", code, complaint)
	}
	server.Close()
	if code, complaint := ask(); code != 1 || strings.Count(complaint, "\n") != 1 {
		t.Errorf("nobody there: exit code %d, %q", code, complaint)
	}
}
