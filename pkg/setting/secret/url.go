package secret

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// URL is an address that may carry secrets: a password, or a token in its path or query, as RPC providers hand out.
//
// It prints with the secrets masked and the rest kept, so that a log line still shows which system was meant:
//
//	postgres://keeper:hunter2@db:5432/perp?sslmode=require  →  postgres://keeper:***@db:5432/perp?sslmode=require
//	https://user:pw@bsc.example.org/v3/0a1b2c?key=7         →  https://***@bsc.example.org/***?***
//
// Host and port are always printed. The zero value is empty. Two URLs are equal (==) when their texts are.
type URL struct {
	text handle
}

// ErrURL is returned for text that is not an absolute URL. It does not repeat the text.
var ErrURL = errors.New("not a URL (write scheme://host)")

// ParseURL hides an absolute URL, one with a scheme and a host. Empty text gives the zero URL. The error never holds
// the text.
func ParseURL(text string) (URL, error) {
	if text == "" {
		return URL{}, nil
	}
	if u, err := url.Parse(text); err != nil || u.Scheme == "" || u.Host == "" {
		return URL{}, ErrURL // The parser's own error quotes the text, secrets included.
	}
	return URL{text: hide(text)}, nil
}

// MustURL is ParseURL for constants: it panics where ParseURL fails.
func MustURL(text string) URL {
	u, err := ParseURL(text)
	if err != nil {
		panic(err)
	}
	return u
}

// Reveal returns the whole URL.
func (u URL) Reveal() string { return u.text.reveal() }

// IsSet reports whether there is a URL at all.
func (u URL) IsSet() bool { return u != URL{} }

// String returns the URL with its secrets masked.
func (u URL) String() string {
	parsed, err := url.Parse(u.Reveal())
	switch {
	case !u.IsSet():
		return ""
	case err != nil:
		return Mask
	case parsed.Scheme == "postgres" || parsed.Scheme == "postgresql":
		return maskDatabase(parsed)
	default:
		return maskEndpoint(parsed)
	}
}

// GoString is what %#v would print; the same as String, quoted.
func (u URL) GoString() string { return strconv.Quote(u.String()) }

// Format prints the masked URL for every verb.
func (u URL) Format(f fmt.State, verb rune) { format(f, verb, u.String()) }

// MarshalText returns the masked URL; a masked document can therefore not be read back.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is ParseURL, for configuration.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := ParseURL(string(text))
	if err != nil {
		return err
	}
	*u = parsed
	return nil
}

// maskDatabase keeps what tells one database from another: user, host and name. Of the query only sslmode is kept;
// connection parameters can be passwords.
func maskDatabase(u *url.URL) string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(url.User(u.User.Username()).String())
		if _, has := u.User.Password(); has {
			b.WriteString(":" + Mask)
		}
		b.WriteString("@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	if u.RawQuery != "" {
		b.WriteString("?" + maskQuery(u.RawQuery))
	}
	return b.String()
}

func maskQuery(raw string) string {
	if mode, only := strings.CutPrefix(raw, "sslmode="); only && !strings.ContainsAny(mode, "&;") {
		return raw
	}
	return Mask
}

// maskEndpoint keeps scheme and host; a provider's token can sit in any other part.
func maskEndpoint(u *url.URL) string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(Mask + "@")
	}
	b.WriteString(u.Host)
	switch u.EscapedPath() {
	case "", "/":
		b.WriteString(u.EscapedPath())
	default:
		b.WriteString("/" + Mask)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		b.WriteString("?" + Mask)
	}
	return b.String()
}
