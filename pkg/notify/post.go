package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/secret"
)

// SignatureHeader carries the signature; see the package comment.
const SignatureHeader = "Perpkeeper-Signature"

// RefusedError means that a receiver answered, and refused a message.
type RefusedError struct {
	Status int
	Body   string // the beginning of its answer
}

// Error names the status.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the receiver answers %d: %q", e.Status, e.Body)
}

// Poster posts messages to one receiver. It is safe for concurrent use.
type Poster struct {
	cfg    Config
	to     secret.URL
	client *http.Client
	clock  func() time.Time // the receiver's idea of the time must be near: it is signed
}

// NewPoster returns a poster for an audience that has a URL.
func NewPoster(cfg Config, to Audience) *Poster {
	return &Poster{cfg: cfg, to: cfg.URL(to), clock: time.Now, client: &http.Client{
		Timeout:       cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close drops idle connections.
func (p *Poster) Close() { p.client.CloseIdleConnections() }

// Deliver posts a message until the receiver takes it, and calls onRetry for every failure that will be tried again. It
// gives up with a [RefusedError] after as many refusals as are configured, and with ctx's cause when ctx ends. After
// any error the message may have arrived all the same.
func (p *Poster) Deliver(ctx context.Context, m Message,
	onRetry func(attempt int, err error, pause time.Duration)) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing message %s: %w", m.ID, err)
	}
	refusals := 0
	return retry.Do(ctx, p.cfg.policy(onRetry), func(ctx context.Context) error {
		err := p.post(ctx, body)
		if _, refused := errors.AsType[*RefusedError](err); refused {
			if refusals++; refusals >= p.cfg.Attempts {
				return retry.Stop(err)
			}
		}
		return err
	})
}

// post makes one try. Errors of the transport name the URL, which may hold a token: only what they wrap goes on.
func (p *Poster) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.to.Reveal(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the receiver's URL is none: %s", p.to)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(SignatureHeader, signature(p.cfg.Secret, p.clock(), body))
	answer, err := p.client.Do(r)
	if transport, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("no answer from the receiver: %w", transport.Err)
	}
	if err != nil {
		return fmt.Errorf("no answer from the receiver: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written to it
	const worthReading = 256
	text, _ := io.ReadAll(io.LimitReader(answer.Body, worthReading)) // only for people
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return &RefusedError{Status: answer.StatusCode, Body: string(text)}
	}
	return nil
}

func signature(key secret.String, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	_, _ = fmt.Fprintf(mac, "%d.", at.Unix()) // a hash takes everything
	_, _ = mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
