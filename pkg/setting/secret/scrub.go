package secret

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// tooShort is how long no secret is that can be told from ordinary words: shorter ones are left where they stand.
const tooShort = 6

// Scrubber replaces secrets by the mask, wherever they stand in a text: whole, by the parts of an address or a header
// that are secret, and as JSON or an address would write them. Parts of fewer than six bytes stay: they are words.
func Scrubber(revealed ...string) *strings.Replacer {
	var parts []string
	for _, text := range revealed {
		for _, part := range secretsOf(text) {
			quoted, err := json.Marshal(part)
			if len(part) < tooShort || err != nil {
				continue
			}
			parts = append(parts, part, strings.Trim(string(quoted), `"`), url.QueryEscape(part), url.PathEscape(part))
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, part := range slices.Compact(parts) {
		pairs = append(pairs, part, Mask)
	}
	return strings.NewReplacer(pairs...)
}

// secretsOf are the parts of a revealed text that nobody may see. Of an address they are what its String masks, of any
// other text the whole and its words, as in "Authorization: Bearer TOKEN".
func secretsOf(text string) (parts []string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(": \t\r\n", r) })
		return append(words, text, strings.TrimPrefix(text, "0x"))
	}
	if password, has := u.User.Password(); has {
		parts = append(parts, password)
	}
	if strings.HasPrefix(u.Scheme, "postgres") { // what else of it is masked are parameters
		for key, values := range u.Query() {
			if key != "sslmode" {
				parts = append(parts, values...)
			}
		}
		return parts
	}
	parts = append(parts, u.User.Username(), u.Fragment)
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	return append(parts, strings.FieldsFunc(u.Path+"/"+u.RawQuery, func(r rune) bool {
		return strings.ContainsRune("/&=;", r)
	})...)
}
