package secret_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	gojson "github.com/goccy/go-json"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"perpkeeper/pkg/setting/secret"
)

// hidden has the secrets where fmt cannot call their methods.
type hidden struct {
	Name  string
	text  secret.String
	url   *secret.URL
	inner struct{ texts []secret.String }
}

// shown has the secrets where encoders look.
type shown struct {
	Text  secret.String
	URL   secret.URL
	Texts []secret.String
	Map   map[string]secret.URL
	Ptr   *secret.String
}

// Whatever prints a structure with secrets in it, the secret text is not in what it prints.
func TestNothingPrintsASecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`[A-Z][a-zA-Z0-9]{11,40}`).Draw(t, "token")
		text := secret.New(token)
		url := secret.MustURL(drawURL(t, token))
		in := hidden{Name: "n", text: text, url: &url}
		in.inner.texts = []secret.String{text}
		out := shown{Text: text, URL: url, Texts: []secret.String{text}, Map: map[string]secret.URL{"a": url},
			Ptr: &text}

		for where, printed := range printings(t, in, out, text, url) {
			decimal := strings.Trim(fmt.Sprint([]byte(token)), "[]")
			for form, leak := range map[string]string{"plain": token, "hex": hex.EncodeToString([]byte(token)),
				"decimal": decimal} {
				if strings.Contains(strings.ToLower(printed), strings.ToLower(leak)) {
					t.Fatalf("%s prints the secret (%s): %s", where, form, printed)
				}
			}
		}
	})
}

// drawURL puts the token into any of the places where tokens are put.
func drawURL(t *rapid.T, token string) string {
	return fmt.Sprintf(rapid.SampledFrom([]string{
		"postgres://keeper:%s@db:5432/perp",
		"postgres://keeper@db/perp?sslmode=require&password=%s",
		"postgresql://db/perp?password=%s",
		"postgresql://db/perp?sslmode=x;password=%s",
		"https://%s@bsc.example.org",
		"https://user:%s@bsc.example.org/",
		"https://bsc.example.org/v3/%s",
		"https://bsc.example.org/v3/%s/rpc",
		"wss://bsc.example.org?key=%s",
		"wss://bsc.example.org/#%s",
		"redis://:%s@cache/0",
	}).Draw(t, "url"), token)
}

// printings returns what each printer makes of the values, by printer.
func printings(t *rapid.T, values ...any) map[string]string {
	all := map[string]string{}
	for i, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U",
			"%e", "%t", "%p", "%20v", "%w"} {
			all[fmt.Sprintf("value %d with %s", i, verb)] = fmt.Sprintf(verb, v)
		}
		all[fmt.Sprintf("value %d as an error", i)] = fmt.Errorf("with %v", v).Error()
		std, err := json.Marshal(v)
		must(t, err)
		goccy, err := gojson.Marshal(v)
		must(t, err)
		var zero, structured bytes.Buffer
		logger := zerolog.New(&zero)
		logger.Info().Interface("v", v).Any("a", v).Msgf("%v", v)
		slog.New(slog.NewTextHandler(&structured, nil)).Info("m", "v", v)
		all[fmt.Sprintf("value %d as JSON", i)] = string(std)
		all[fmt.Sprintf("value %d as goccy JSON", i)] = string(goccy)
		all[fmt.Sprintf("value %d in zerolog", i)] = zero.String()
		all[fmt.Sprintf("value %d in slog", i)] = structured.String()
	}
	return all
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func TestStringKeepsItsText(t *testing.T) {
	var s secret.String
	if s.IsSet() || s.Reveal() != "" || fmt.Sprint(s) != "" {
		t.Fatalf("the zero secret is %q, printed %q, set %t", s.Reveal(), s, s.IsSet())
	}
	if err := s.UnmarshalText([]byte("hunter2")); err != nil {
		t.Fatal(err)
	}
	if s.Reveal() != "hunter2" || !s.IsSet() {
		t.Fatalf("revealed %q, set %t", s.Reveal(), s.IsSet())
	}
	if s != secret.New("hunter2") || s == secret.New("hunter3") {
		t.Fatal("secrets do not compare by their text")
	}
	if got := fmt.Sprintf("%v %s %q %#v", s, s, s, s); got != `*** *** "***" "***"` {
		t.Fatalf("printed %s", got)
	}
}

func TestURLMasks(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"postgres://keeper:hunter2@db:5432/perp": "postgres://keeper:***@db:5432/perp",
		"postgres://keeper@db/perp":              "postgres://keeper@db/perp",
		"postgres://db/perp":                     "postgres://db/perp",
		"postgresql://keeper:h@db/perp?sslmode=require":          "postgresql://keeper:***@db/perp?sslmode=require",
		"postgresql://keeper:h@db/perp?sslmode=disable&x=1":      "postgresql://keeper:***@db/perp?***",
		"http://127.0.0.1:8545":                                  "http://127.0.0.1:8545",
		"http://127.0.0.1:8545/":                                 "http://127.0.0.1:8545/",
		"wss://bsc.example.org/ws/0a1b2c":                        "wss://bsc.example.org/***",
		"https://user:pw@bsc.example.org:443/v3/0a1b2c?key=7#xy": "https://***@bsc.example.org:443/***?***",
		"wss://bsc.example.org/#0a1b2c":                          "wss://bsc.example.org/?***",
		"https://[::1]:8545/token":                               "https://[::1]:8545/***",
	} {
		u, err := secret.ParseURL(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := u.String(); got != want {
			t.Errorf("%q prints as %q, want %q", text, got, want)
		}
		if u.Reveal() != text || u.IsSet() != (text != "") {
			t.Errorf("%q reveals %q, set %t", text, u.Reveal(), u.IsSet())
		}
	}
}

func TestURLRefusesWithoutRepeating(t *testing.T) {
	for _, text := range []string{"hunter2", "/hunter2", "http://", "host=db password=hunter2",
		"postgres://u:hunter2@db:port/x", "http://hunter2\x7f"} {
		u := secret.MustURL("http://kept")
		err := u.UnmarshalText([]byte(text))
		if !errors.Is(err, secret.ErrURL) {
			t.Errorf("%q: got error %v", text, err)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("the error repeats the text: %v", err)
		}
		if u != secret.MustURL("http://kept") {
			t.Errorf("%q: a refused text changed the value to %q", text, u.Reveal())
		}
	}
}

func TestEncodersPrintTheMask(t *testing.T) {
	out := struct {
		Text, Unset secret.String
		URL         secret.URL
	}{Text: secret.New("hunter2"), URL: secret.MustURL("https://host/hunter2")}
	const want = `{"Text":"***","Unset":"","URL":"https://host/***"}`
	for name, marshal := range map[string]func(any) ([]byte, error){"encoding/json": json.Marshal,
		"goccy": gojson.Marshal} {
		if got, err := marshal(out); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}
