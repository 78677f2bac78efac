package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

// HTTP posts JSON, for the plug-ins that speak HTTP.
type HTTP struct {
	client  *http.Client
	secrets []secret.String
}

// NewHTTP returns a client that gives up a request after timeout. Redirects are not followed: a message, and the
// credentials beside it, are meant for one receiver. Secrets are what goes to it in headers or bodies: where it echoes
// one, no error shows it.
func NewHTTP(timeout time.Duration, secrets ...secret.String) HTTP {
	const keepConnection = 10 * time.Second // messages come in bursts, or hours apart
	wire := transport.HTTP(timeout)
	wire.IdleConnTimeout = keepConnection
	return HTTP{secrets: secrets, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     wire,
	}}
}

// Post makes one try. An answer whose status is not 200 to 299 is a [RefusedError]. Errors of the transport name the
// URL, which may hold a token: only what they wrap goes on. So do many servers' own pages about what is not there.
func (h HTTP) Post(ctx context.Context, to secret.URL, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Reveal(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the receiver's URL is none: %s", to)
	}
	for key := range header {
		r.Header.Set(key, header.Get(key))
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.client.Do(r)
	if transport, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("no answer from the receiver: %w", transport.Err)
	}
	if err != nil {
		return fmt.Errorf("no answer from the receiver: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written to it
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		const worthReading = 4096
		text, _ := io.ReadAll(io.LimitReader(answer.Body, worthReading)) // only for people
		return Refused(answer.StatusCode, h.unkeyed(unaddressed(string(text), r.URL)))
	}
	return nil
}

// unkeyed is a text with the client's secrets masked.
func (h HTTP) unkeyed(text string) string {
	for _, s := range h.secrets {
		if s.IsSet() {
			text = strings.ReplaceAll(text, s.Reveal(), secret.Mask)
		}
	}
	return text
}

// unaddressed is a text with what a URL holds beside its host masked.
func unaddressed(text string, u *url.URL) string {
	for _, part := range []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery} {
		if len(part) > len("/") {
			text = strings.ReplaceAll(text, part, secret.Mask)
		}
	}
	return text
}

// UnlessBusy is err, but that a receiver which asks for patience (429), is out of order (500 and above) or does not
// know who asks (401) has not refused the message: it is tried for as long as one that does not answer.
func UnlessBusy(err error) error {
	if refused, is := errors.AsType[*RefusedError](err); is && (refused.Status == http.StatusTooManyRequests ||
		refused.Status == http.StatusUnauthorized || refused.Status >= http.StatusInternalServerError) {
		return fmt.Errorf("not now: %s", refused.Error())
	}
	return err
}
