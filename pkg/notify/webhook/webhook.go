// Package webhook posts messages as signed JSON, for programs.
//
// The header [signatureHeader] carries the time of the posting and an HMAC-SHA256 over that time and the body, so that
// a receiver can tell ours from forged and from replayed ones:
//
//	Perpkeeper-Signature: t=<Unix seconds>,v1=<hex of HMAC-SHA256(secret, "<Unix seconds>.<body>")>
//
// Guaranteed: delivered means a status of 200 to 299. Any other answer is a refusal.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// signatureHeader carries the signature; see the package comment.
const signatureHeader = "Perpkeeper-Signature"

// Config is one [[notify.webhook]].
type Config struct {
	Name     string          `toml:"name" help:"the receiver's place in the results, and its name in metrics and logs"`
	Audience notify.Audience `toml:"audience" help:"owner or operator"`
	URL      secret.URL      `toml:"url" help:"where messages are posted to"`
	Secret   secret.String   `toml:"secret" help:"signs what is posted (HMAC-SHA256); 16 characters at least"`
}

// Target implements [notify.Plugin].
func (c Config) Target() notify.Target { return notify.Target{Name: c.Name, Audience: c.Audience} }

// Validate implements [notify.Plugin].
func (c Config) Validate() error {
	return errors.Join(check.Refuse(!c.URL.IsSet(), "url: empty (where messages are posted to)"), CheckSecret(c.Secret))
}

// CheckSecret refuses a secret that could be guessed.
func CheckSecret(s secret.String) error {
	const leastSecret = 16
	return check.Refuse(len(s.Reveal()) < leastSecret,
		"secret: has fewer than %d characters (receivers could not tell our messages from others')", leastSecret)
}

// Open implements [notify.Plugin].
func (c Config) Open(timeout time.Duration) notify.Notifier {
	return &poster{cfg: c, http: notify.NewHTTP(timeout, c.Secret), clock: time.Now}
}

type poster struct {
	cfg   Config
	http  notify.HTTP
	clock func() time.Time // the receiver's idea of the time must be near: it is signed
}

// Notify implements [notify.Notifier].
func (p *poster) Notify(ctx context.Context, m notify.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing message %s: %w", m.ID, err)
	}
	header := http.Header{signatureHeader: {signature(p.cfg.Secret, p.clock(), body)}}
	return p.http.Post(ctx, p.cfg.URL, header, body)
}

func signature(key secret.String, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = fmt.Fprintf(mac, "%d.", at.Unix()) // a hash takes everything
	_, _ = mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
