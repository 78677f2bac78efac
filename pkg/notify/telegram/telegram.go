// Package telegram sends messages to a chat through the Bot API of Telegram, as text.
//
// Guaranteed: delivered means that Telegram has taken the message for the chat. A limit on how much a bot may send
// (429) is waited for; what Telegram does not take (an unknown chat, a token that is no longer valid) is a refusal.
package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"perpkeeper/pkg/check"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
)

// Config is one [[notify.telegram]].
type Config struct {
	Name     string          `toml:"name" help:"the receiver's place in the results, and its name in metrics and logs"`
	Audience notify.Audience `toml:"audience" help:"owner or operator"`
	Token    secret.String   `toml:"token" help:"the bot's token, as @BotFather gave it"`
	Chat     string          `toml:"chat" help:"the chat's number, or @name of a channel; the bot must be in it"`
	API      secret.URL      `toml:"api" help:"a Bot API server of one's own; empty = https://api.telegram.org"`
}

// Target implements [notify.Plugin].
func (c Config) Target() notify.Target { return notify.Target{Name: c.Name, Audience: c.Audience} }

// Validate implements [notify.Plugin].
func (c Config) Validate() error {
	id, key, both := strings.Cut(c.Token.Reveal(), ":")
	return errors.Join(
		check.Refuse(!both || id == "" || key == "", "token: is not a bot's token (NUMBER:TEXT)"),
		check.Refuse(c.Chat == "", "chat: empty (the number of a chat, or @name of a channel)"),
	)
}

// Open implements [notify.Plugin].
func (c Config) Open(timeout time.Duration) notify.Notifier {
	base := cmp.Or(c.API.Reveal(), "https://api.telegram.org")
	method := strings.TrimRight(base, "/") + "/bot" + url.PathEscape(c.Token.Reveal()) + "/sendMessage"
	address, _ := secret.ParseURL(method) // without one every try says so
	return &bot{chat: c.Chat, address: address, http: notify.NewHTTP(timeout, c.Token)}
}

type bot struct {
	chat    string
	address secret.URL // holds the token
	http    notify.HTTP
}

// Notify implements [notify.Notifier]. See https://core.telegram.org/bots/api#sendmessage.
func (b *bot) Notify(ctx context.Context, m notify.Message) error {
	body, err := json.Marshal(map[string]any{"chat_id": b.chat, "text": clip(m.Text()),
		"link_preview_options": map[string]bool{"is_disabled": true}})
	if err != nil {
		return fmt.Errorf("writing message %s: %w", m.ID, err)
	}
	return notify.UnlessBusy(b.http.Post(ctx, b.address, nil, body))
}

// clip keeps a text within what Telegram takes.
func clip(text string) string {
	const most = 4096
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
