// Package telegram sends messages to a chat through the Bot API of Telegram, as text.
//
// Guaranteed: delivered means that Telegram has taken the message for the chat. A limit on how much a bot may send
// (429) is waited for, and so is a token that is no longer valid (401); what Telegram does not take (an unknown chat, a
// bot that was shut out) is a refusal. A group that became a supergroup has another number since: it is followed there,
// and told so.
package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service/check"
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
	return &bot{chat: c.Chat, given: c.Chat, address: address, http: notify.NewHTTP(timeout, c.Token)}
}

type bot struct {
	given   string     // the chat as it is configured
	address secret.URL // holds the token
	http    notify.HTTP

	mu   sync.Mutex
	chat string // where it is now
}

// Notify implements [notify.Notifier].
func (b *bot) Notify(ctx context.Context, m notify.Message) error {
	b.mu.Lock()
	chat := b.chat
	b.mu.Unlock()
	err := b.send(ctx, chat, m.Text())
	to := movedTo(err)
	if to == "" || to == chat {
		return notify.UnlessBusy(err)
	}
	note := fmt.Sprintf("This chat's number is %s now, and no longer %s: correct chat in [[notify.telegram]].\n\n", to,
		b.given)
	if err := b.send(ctx, to, note+m.Text()); err != nil {
		return notify.UnlessBusy(err)
	}
	b.mu.Lock()
	b.chat = to
	b.mu.Unlock()
	return nil
}

// send makes one try. See https://core.telegram.org/bots/api#sendmessage.
func (b *bot) send(ctx context.Context, chat, text string) error {
	body, err := json.Marshal(map[string]any{"chat_id": chat, "text": clip(text),
		"link_preview_options": map[string]bool{"is_disabled": true}})
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	return b.http.Post(ctx, b.address, nil, body)
}

// movedTo is the number that a refusal names for a chat that has another one now; empty if it names none. See
// https://core.telegram.org/bots/api#responseparameters.
func movedTo(err error) string {
	refused, is := errors.AsType[*notify.RefusedError](err)
	if !is || refused.Status != http.StatusBadRequest {
		return ""
	}
	_, number, _ := strings.Cut(refused.Body, `"migrate_to_chat_id":`)
	number = strings.TrimLeft(number, " ")
	end := strings.IndexFunc(number, func(r rune) bool { return r != '-' && (r < '0' || r > '9') })
	return number[:max(end, 0)]
}

// clip keeps a text within what Telegram takes.
func clip(text string) string {
	const most = 4096
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
