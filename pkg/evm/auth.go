package evm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"perpkeeper/pkg/setting/secret"
)

// header goes with every request to an endpoint, which knows us by it. The zero header is none.
type header struct {
	name  string
	value secret.String
}

// noHeader stands in a list of headers for an endpoint that wants none.
const noHeader = "-"

// parseHeader reads NAME: VALUE. Its error says nothing of the text.
func parseHeader(text secret.String) (header, error) {
	if strings.TrimSpace(text.Reveal()) == noHeader {
		return header{}, nil
	}
	name, value, found := strings.Cut(text.Reveal(), ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !found || name == "" || value == "" || strings.ContainsFunc(name, notOfName) ||
		strings.ContainsFunc(value, notOfValue) {
		return header{}, errors.New("is no header (NAME: VALUE, or - for none)")
	}
	return header{name, secret.New(value)}, nil
}

func notOfName(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func notOfValue(r rune) bool { return r < ' ' || r > '~' }

// checkHeaders reports why the headers of endpoints cannot work.
func (c Config) checkHeaders() error {
	return errors.Join(headersFor("headers", "urls", c.Headers, len(c.URLs)),
		headersFor("private_headers", "private_urls", c.PrivateHeaders, len(c.PrivateURLs)))
}

// headersFor reports why a list of headers does not fit the list of endpoints it goes with.
func headersFor(name, endpoints string, list []secret.String, want int) error {
	if n := len(list); n > 0 && n != want {
		return fmt.Errorf("%s: there are %d for %d %s (one for each, - where none is wanted)", name, n, want, endpoints)
	}
	var problems []error
	for i, text := range list {
		if _, err := parseHeader(text); err != nil {
			problems = append(problems, fmt.Errorf("%s: number %d %w", name, i+1, err))
		}
	}
	return errors.Join(problems...)
}

// headerOf is that of the i-th endpoint of a list, which has been checked.
func headerOf(list []secret.String, i int) (h header) {
	if i < len(list) {
		h, _ = parseHeader(list[i])
	}
	return h
}

// set puts the header into a request.
func (h header) set(into http.Header) {
	if h.name != "" {
		into.Set(h.name, h.value.Reveal())
	}
}

// stay keeps a request from being sent on to where an answer points: what it holds, signed transactions and keys of the
// endpoint in headers or elsewhere, is meant for one host, and whose word the answer would be nobody could tell.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
