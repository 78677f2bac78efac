// Package slack posts messages to a channel of Slack through an incoming webhook, as text. Mattermost and others take
// the same.
//
// Guaranteed: delivered means that Slack has taken the message. Its rate limit (429) and its failures are waited for;
// any other answer (a webhook that was removed, an archived channel) is a refusal.
package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/setting/secret"
)

// Config is one [[notify.slack]].
type Config struct {
	Name     string          `toml:"name" help:"the receiver's place in the results, and its name in metrics and logs"`
	Audience notify.Audience `toml:"audience" help:"owner or operator"`
	URL      secret.URL      `toml:"url" help:"the incoming webhook, https://hooks.slack.com/services/…"`
}

// Target implements [notify.Plugin].
func (c Config) Target() notify.Target { return notify.Target{Name: c.Name, Audience: c.Audience} }

// Validate implements [notify.Plugin].
func (c Config) Validate() error {
	if !c.URL.IsSet() {
		return errors.New("url: empty (the incoming webhook of the channel)")
	}
	return nil
}

// Open implements [notify.Plugin].
func (c Config) Open(timeout time.Duration) notify.Notifier {
	return &channel{hook: c.URL, http: notify.NewHTTP(timeout)}
}

type channel struct {
	hook secret.URL
	http notify.HTTP
}

// escape keeps a text from being read as a link or a mention
// (https://docs.slack.dev/messaging/formatting-message-text).
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Notify implements [notify.Notifier]. See https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.
func (c *channel) Notify(ctx context.Context, m notify.Message) error {
	body, err := json.Marshal(map[string]string{"text": escape.Replace(m.Text())})
	if err != nil {
		return fmt.Errorf("writing message %s: %w", m.ID, err)
	}
	return notify.UnlessBusy(c.http.Post(ctx, c.hook, nil, body))
}
