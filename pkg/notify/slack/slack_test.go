package slack

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/setting/secret"
)

// LIQ-12: an alarm reaches the channel as it is, and nothing in it is read as a mention. What Slack refuses is a
// refusal; its limits and failures are waited for. No error shows the webhook.
func TestNotify(t *testing.T) {
	status, sent := http.StatusOK, ""
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = r.URL.Path + " " + string(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "channel_is_archived")
	}))
	c := Config{Name: "channel", Audience: notify.Operator, URL: secret.MustURL(hook.URL + "/services/T/B/token")}
	n := c.Open(time.Second)
	m := notify.Message{ID: "a:1", Event: notify.KeepersAlarm, ChainID: 56,
		Alarm: &notify.Alarm{Name: "blind", Text: "<!channel> 1 & 2"}}
	if err := n.Notify(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	want := `/services/T/B/token {"text":"keepers.alarm: blind (chain 56)\n` +
		`\u0026lt;!channel\u0026gt; 1 \u0026amp; 2\nid: a:1"}`
	if sent != want {
		t.Errorf("posted %s, want %s", sent, want)
	}
	for code, refused := range map[int]bool{403: true, 404: true, 410: true, 429: false, 500: false} {
		status = code
		err := n.Notify(t.Context(), m)
		if _, is := errors.AsType[*notify.RefusedError](err); is != refused || err == nil {
			t.Errorf("%d: %v, refused %t", code, err, is)
		}
	}
	hook.Close()
	if err := n.Notify(t.Context(), m); err == nil || strings.Contains(err.Error(), "token") {
		t.Errorf("without a server: %v", err)
	}
	if err := (Config{}).Validate(); err == nil || c.Validate() != nil {
		t.Errorf("no webhook is taken: %v", err)
	}
}
