package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// Check names every setting of a table that cannot work for a plug-in. Each line begins with the key.
func (p Plugin) Check(t Table) error {
	problems := []error{CheckScheme("url", t.URL, "http", "https"),
		CheckScheme("stream_url", t.StreamURL, "ws", "wss"),
		check.Refuse(t.Name == "", "name: empty (metrics and logs need one)"),
		check.Refuse(p.Feed != nil && len(t.Tokens) == 0, "token: none given (name each token, its feed and its "+
			"decimals)"),
	}
	for _, k := range []struct {
		key string
		set bool
	}{
		{"url", t.URL.IsSet()}, {"stream_url", t.StreamURL.IsSet()}, {"key", t.Key.IsSet()},
		{"secret", t.Secret.IsSet()}, {"provider", !t.Provider.IsZero()},
	} {
		needed := slices.Contains(p.Needs, k.key)
		switch {
		case needed && !k.set:
			problems = append(problems, fmt.Errorf("%s: empty (a source of kind %s needs it)", k.key, p.Kind))
		case !needed && k.set && !slices.Contains(p.Knows, k.key):
			problems = append(problems, fmt.Errorf("%s: a source of kind %s knows none (drop it)", k.key, p.Kind))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"interval", t.Interval, 10 * time.Millisecond}, {"max_age", t.MaxAge, time.Second},
		{"fail_after", t.FailAfter, 100 * time.Millisecond}} {
		if d.value != 0 {
			problems = append(problems, check.Between(d.name, d.value, d.least, 48*time.Hour))
		}
	}
	return errors.Join(append(problems, p.checkTokens(t)...)...)
}

func (p Plugin) checkTokens(t Table) (problems []error) {
	seen := map[chain.Address]bool{}
	for i, token := range t.Tokens {
		key := fmt.Sprintf("token[%d]", i)
		switch {
		case token.Address.IsZero():
			problems = append(problems, fmt.Errorf("%s.address: no address given", key))
		case seen[token.Address]:
			problems = append(problems, fmt.Errorf("%s.address: %s is there twice", key, token.Address))
		case token.Decimals > 36 || token.FeedDecimals > 36:
			problems = append(problems, fmt.Errorf("%s.decimals: no token or feed has more than 36", key))
		case p.Feed == nil: // it is told by its address
		case p.Feed(token.Feed) != nil:
			problems = append(problems, fmt.Errorf("%s.feed: %q %w", key, token.Feed, p.Feed(token.Feed)))
		}
		seen[token.Address] = true
	}
	return problems
}

// CheckScheme is nil for no address and for one with one of the schemes.
func CheckScheme(key string, u secret.URL, schemes ...string) error {
	scheme, _, _ := strings.Cut(u.Reveal(), "://")
	return check.Refuse(u.IsSet() && !slices.Contains(schemes, strings.ToLower(scheme)),
		"%s: %s is not an address of %s", key, u, strings.Join(schemes, " or "))
}
