package notify

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
)

// A receiver that answers with what it was sent shows no secret: not of its address, of a header, or of the body.
func TestEchoedSecretsAreMasked(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		http.Error(w, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body), http.StatusForbidden)
	}))
	defer echo.Close()
	h := NewHTTP(time.Second, secret.New("header-key"), secret.String{}, secret.New("body-key"))
	header := http.Header{"Authorization": {"Bearer header-key"}}
	err := h.Post(t.Context(), secret.MustURL(echo.URL+"/path-key"), header, []byte(`{"routing_key":"body-key"}`))
	refused, is := errors.AsType[*RefusedError](err)
	if want := "*** Bearer *** {\"routing_key\":\"***\"}\n"; !is || refused.Body != want {
		t.Errorf("%v, want %q", err, want)
	}
}
