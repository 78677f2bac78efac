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
	for code, refused := range map[int]bool{400: true, 404: true, 401: false, 403: true, 429: false, 500: false,
		502: false} {
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

// A group that became a supergroup has another number: the bot goes on there, at once and from then on, and says so
// where it is read. Elsewhere it is tried again as ever.
func TestFollowsAGroup(t *testing.T) {
	var sent []string
	status := http.StatusOK
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Chat string `json:"chat_id"`
			Text string
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		sent = append(sent, q.Chat+" "+q.Text)
		if q.Chat != "-1001" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to `+
				`a supergroup chat","parameters":{"migrate_to_chat_id":-1001}}`)
			return
		}
		w.WriteHeader(status)
	}))
	defer api.Close()
	n := Config{Name: "phone", Token: secret.New(token), Chat: "-100", API: secret.MustURL(api.URL)}.Open(time.Second)
	m := notify.Message{ID: "a:1", Event: notify.KeepersAlarm, Alarm: &notify.Alarm{Name: "blind", Text: "x"}}
	status = http.StatusTooManyRequests
	if err := n.Notify(t.Context(), m); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("the new chat is busy: %v", err)
	}
	status, sent = http.StatusOK, nil
	for range 2 {
		if err := n.Notify(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	if len(sent) != 3 || !strings.HasPrefix(sent[1], "-1001 ") || !strings.HasPrefix(sent[2], "-1001 ") ||
		!strings.Contains(sent[1], "number is -1001 now, and no longer -100: ") || strings.Contains(sent[2], "number") {
		t.Errorf("sent %q", sent)
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
