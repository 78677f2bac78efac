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

	"perpkeeper/pkg/secret"
)

// maxAnswer bounds what is read of an answer, or of one event of a stream.
const maxAnswer = 8 << 20

// client sends requests to one service over HTTP. Its errors name the service without the secret parts of its address.
type client struct {
	base    secret.URL
	http    *http.Client
	timeout time.Duration
	sign    func(*http.Request) // adds credentials; nil for services that want none
}

func newClient(base secret.URL, timeout time.Duration) *client {
	return &client{base: base, timeout: timeout, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
			ForceAttemptHTTP2:     true,
			ResponseHeaderTimeout: timeout, TLSHandshakeTimeout: timeout,
		},
		// credentials go nowhere else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// statusError is an answer with an HTTP status that means failure.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return "HTTP " + e.text }

// isNotFound tells whether a service does not have a page at all, as opposed to failing to answer.
func isNotFound(err error) bool {
	status, is := errors.AsType[*statusError](err)
	return is && (status.code == http.StatusNotFound || status.code == http.StatusMethodNotAllowed ||
		status.code == http.StatusNotImplemented)
}

// wrap adds the service's address, without its secret parts, to an error.
func (c *client) wrap(err error) error {
	if err == nil {
		return nil
	}
	if wrapped, is := errors.AsType[*url.Error](err); is { // its text repeats the whole address
		err = wrapped.Err
	}
	return fmt.Errorf("asking %s for prices: %w", c.base, err)
}

// do sends a GET. Besides 200, the statuses named are answers too.
func (c *client) do(ctx context.Context, header http.Header, query url.Values, answers []int,
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
	if c.sign != nil {
		c.sign(request)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || slices.Contains(answers, answer.StatusCode) {
		return answer, nil
	}
	_ = answer.Body.Close() // nothing depends on how a read connection closes
	return nil, &statusError{answer.StatusCode, answer.Status}
}

// get reads a whole answer.
func (c *client) get(ctx context.Context, query url.Values, path ...string) ([]byte, error) {
	body, _, err := c.getChanged(ctx, "", query, path...)
	return body, err
}

// getChanged reads a whole answer unless it is still the one with a tag (RFC 9110, 13.1.2); then there is no body. It
// returns the answer's own tag.
func (c *client) getChanged(ctx context.Context, tag string, query url.Values, path ...string) (body []byte,
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
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return body, answer.Header.Get("ETag"), err
}

// poll calls ask at once and then at an interval, until it fails or ctx ends.
func poll(ctx context.Context, interval time.Duration, ask func(context.Context) error) error {
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
