package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
)

const token = "123456:the-bots-token"

// LIQ-12: an alarm reaches the chat by the bot's token, which no error shows. What Telegram refuses is a refusal; its
// limits and failures are waited for.
func TestNotify(t *testing.T) {
	status, path, sent := http.StatusOK, "", map[string]any{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		path = r.URL.Path
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Errorf("the body is %s", body)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"ok":false,"description":"Bad Request: chat not found by `+token+`"}`)
	}))
	c := Config{Name: "phone", Audience: notify.Operator, Token: secret.New(token), Chat: "-100",
		API: secret.MustURL(api.URL + "/")}
	n := c.Open(time.Second)
	m := notify.Message{ID: "a:1", Event: notify.KeepersAlarm, ChainID: 56,
		Alarm: &notify.Alarm{Name: "blind", Text: strings.Repeat("ü", 5000)}}
	if err := n.Notify(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	text, _ := sent["text"].(string)
	if path != "/bot"+token+"/sendMessage" || sent["chat_id"] != "-100" ||
		!strings.HasPrefix(text, "keepers.alarm: blind (chain 56)\nü") || utf8.RuneCountInString(text) != 4096 {
		t.Errorf("%s was posted %v", path, sent)
	}
	for code, refused := range map[int]bool{400: true, 401: true, 403: true, 429: false, 500: false, 502: false} {
		status = code
		err := n.Notify(t.Context(), m)
		if _, is := errors.AsType[*notify.RefusedError](err); is != refused || err == nil ||
			!strings.Contains(err.Error(), "chat not found by ***") {
			t.Errorf("%d: %v, refused %t", code, err, is)
		}
	}
	api.Close()
	if err := n.Notify(t.Context(), m); err == nil || strings.Contains(err.Error(), "the-bots-token") {
		t.Errorf("without a server: %v", err)
	}
}

func TestValidate(t *testing.T) {
	if err := (Config{Token: secret.New(token), Chat: "@alarms"}).Validate(); err != nil {
		t.Error(err)
	}
	err := (Config{Token: secret.New("the-bots-token")}).Validate()
	if err == nil || !strings.Contains(err.Error(), "token: ") || !strings.Contains(err.Error(), "chat: ") ||
		strings.Contains(err.Error(), "the-bots-token") {
		t.Errorf("%v", err)
	}
}
