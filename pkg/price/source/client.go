package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

// MaxAnswer bounds what is read of an answer, or of one event of a stream, in bytes.
const MaxAnswer = 8 << 20

// Client sends requests to one service over HTTP. Its errors name the service without the secret parts of its address
// once they have gone through [Client.Wrap].
type Client struct {
	// Sign adds credentials; nil for services that want none.
	Sign func(*http.Request)

	base    secret.URL
	http    *http.Client
	timeout time.Duration
}

// NewClient returns a client of the service at an address. No request takes longer than timeout, streams left out.
func NewClient(base secret.URL, timeout time.Duration) *Client {
	wire := transport.HTTP(timeout)
	wire.ResponseHeaderTimeout = timeout
	return &Client{base: base, timeout: timeout, http: &http.Client{
		Transport: wire,
		// credentials go nowhere else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer with an HTTP status that means failure.
type StatusError struct {
	Code int
	Text string
}

// Error shows the status.
func (e *StatusError) Error() string { return "HTTP " + e.Text }

// IsNotFound reports whether a service does not have a page at all, as opposed to failing to answer.
func IsNotFound(err error) bool {
	status, is := errors.AsType[*StatusError](err)
	return is && (status.Code == http.StatusNotFound || status.Code == http.StatusMethodNotAllowed ||
		status.Code == http.StatusNotImplemented)
}

// Wrap adds the service's address, without its secret parts, to an error.
func (c *Client) Wrap(err error) error {
	if err == nil {
		return nil
	}
	if wrapped, is := errors.AsType[*url.Error](err); is { // its text repeats the whole address
		err = wrapped.Err
	}
	return fmt.Errorf("asking %s for prices: %w", c.base, err)
}

// do sends a GET. Besides 200, the statuses named are answers too.
func (c *Client) do(ctx context.Context, header http.Header, query url.Values, answers []int,
	path ...string) (*http.Response, error) {
	address, err := url.Parse(c.base.Reveal())
	if err != nil {
		return nil, errors.New("not an address")
	}
	address = address.JoinPath(path...)
	if len(query) > 0 {
		address.RawQuery = query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, errors.New("not an address")
	}
	maps.Copy(request.Header, header)
	if c.Sign != nil {
		c.Sign(request)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || slices.Contains(answers, answer.StatusCode) {
		return answer, nil
	}
	_ = answer.Body.Close() // nothing depends on how a read connection closes
	return nil, &StatusError{answer.StatusCode, answer.Status}
}

// Get reads a whole answer.
func (c *Client) Get(ctx context.Context, query url.Values, path ...string) ([]byte, error) {
	body, _, err := c.GetChanged(ctx, "", query, path...)
	return body, err
}

// GetChanged reads a whole answer unless it is still the one with a tag (RFC 9110, 13.1.2); then there is no body. It
// returns the answer's own tag.
func (c *Client) GetChanged(ctx context.Context, tag string, query url.Values, path ...string) (body []byte,
	newTag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	header, answers := http.Header{}, []int{http.StatusPartialContent}
	if tag != "" {
		header.Set("If-None-Match", tag)
		answers = append(answers, http.StatusNotModified)
	}
	answer, err := c.do(ctx, header, query, answers, path...)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }() // nothing depends on how a read connection closes
	if answer.StatusCode == http.StatusNotModified {
		return nil, tag, nil
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
	if err == nil && len(body) > MaxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	return body, answer.Header.Get("ETag"), err
}

// PollChanged asks for a page at once and then at an interval, until that or give fails, or ctx ends. Give gets the
// answer, nil where it is still the one before.
func (c *Client) PollChanged(ctx context.Context, interval time.Duration, give func(body []byte) error,
	path ...string) error {
	tag := ""
	return Poll(ctx, interval, func(ctx context.Context) error {
		body, newest, err := c.GetChanged(ctx, tag, nil, path...)
		if err == nil {
			err = give(body)
		}
		if err == nil {
			tag = newest
		}
		return err
	})
}

// Poll calls ask at once and then at an interval, until it fails or ctx ends.
func Poll(ctx context.Context, interval time.Duration, ask func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := ask(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
