package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	service "perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
)

const feedV3 = "0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782"

// root is where the scanner has its prices.
type root struct {
	Scanner struct {
		Price Config `toml:"price"`
	} `toml:"scanner"`
}

const everySource = `
[scanner.price.gates]
max_deviation = 150
[[scanner.price.source]]
name = "data-streams"
kind = "streams"
url = "https://api.example.org/hunter2"
stream_url = "wss://ws.example.org/hunter2"
key = "hunter2-key"
secret = "hunter2-secret"
provider = "0x0000000000000000000000000000000000000009"
[[scanner.price.source.token]]
address = "0x0000000000000000000000000000000000000001"
feed = "0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782"
decimals = 18
[[scanner.price.source]]
name = "on-chain"
kind = "aggregator"
provider = "0x0000000000000000000000000000000000000009"
max_age = "2h"
fail_after = "2h"
[[scanner.price.source.token]]
address = "0x0000000000000000000000000000000000000001"
feed = "0x0000000000000000000000000000000000000077"
decimals = 18
[[scanner.price.source]]
name = "api"
kind = "gmx"
url = "https://prices.example.org"
provider = "0x0000000000000000000000000000000000000009"
[[scanner.price.source]]
name = "demo"
kind = "devnet"
url = "http://127.0.0.1:8600"
`

// A file names sources of every kind; printing it shows no secret.
func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keeper.toml")
	if err := os.WriteFile(path, []byte(everySource), 0o600); err != nil {
		t.Fatal(err)
	}
	var cfg root
	cfg.Scanner.Price = DefaultConfig()
	set, err := service.New("scanner", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Load([]string{"--config", path}); err != nil {
		t.Fatal(err)
	}
	p := cfg.Scanner.Price
	if p.Gates.MaxDeviation != 150 || p.Gates.Confirmations != 2 || p.Failover.After != 5*time.Second {
		t.Errorf("%+v", p)
	}
	for _, kind := range kinds() {
		if !slices.ContainsFunc(p.Sources, func(s source.Table) bool { return s.Kind == kind }) {
			t.Errorf("no source of kind %s is in everySource (beside this test)", kind)
		}
	}
	members, closeIdle := Open(p, nil, chain.Address{})
	defer closeIdle()
	for i, table := range p.Sources {
		if members[i].Name != table.Name || members[i].Source == nil {
			t.Errorf("source %d: %+v", i, members[i])
		}
	}
	if members[1].After != 2*time.Hour || members[1].MaxAge != 2*time.Hour || members[0].Tokens[0] != sourcetest.Wbnb ||
		members[2].Tokens != nil {
		t.Errorf("%+v", members)
	}
	var printed strings.Builder
	if err := set.WriteTOML(&printed); err != nil {
		t.Fatal(err)
	}
	if text := printed.String() + fmt.Sprintf("%+v", p); strings.Contains(text, "hunter2") ||
		!strings.Contains(text, "***") {
		t.Errorf("printed:\n%s", text)
	}
}

func TestShortForm(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil || cfg.IsSet() {
		t.Errorf("no sources: %v", err)
	}
	cfg.URL = secret.MustURL("http://h")
	members, closeIdle := Open(cfg, nil, chain.Address{})
	defer closeIdle()
	if err := cfg.Validate(); err != nil || !cfg.IsSet() || len(members) != 1 || members[0].Name != "devnet" {
		t.Errorf("%+v, %v", members, err)
	}
}

// plain is a table that works.
func plain(name string) source.Table {
	return source.Table{Name: name, Kind: "devnet", URL: secret.MustURL("http://h")}
}

func TestConfigIsChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"url: ftp://h is not an address of http or https": func(c *Config) { c.URL = secret.MustURL("ftp://h") },
		"url: is given beside source tables": func(c *Config) {
			c.URL,
				c.Sources = secret.MustURL("http://h"), []source.Table{plain("a")}
		},
		`source[0].kind: "x" is not one of devnet`: func(c *Config) {
			c.Sources = []source.Table{{Name: "a",
				Kind: "x"}}
		},
		`source[1].name: "a" is taken by another source`: func(c *Config) {
			c.Sources = []source.Table{plain("a"), plain("a")}
		},
	} {
		cfg := DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}

func TestSourcesAreChecked(t *testing.T) {
	streams := source.Table{
		Name: "s", Kind: "streams", URL: secret.MustURL("https://h"), StreamURL: secret.MustURL("wss://h"),
		Key: secret.New("k"), Secret: secret.New("hunter2"),
		Provider: sourcetest.Provider, Tokens: []source.Token{{Address: sourcetest.Wbnb, Feed: feedV3, Decimals: 18}},
	}
	aggregator := source.Table{Name: "a", Kind: "aggregator", Provider: sourcetest.Provider,
		Tokens: []source.Token{{Address: sourcetest.Wbnb, Feed: sourcetest.Provider.Hex(), Decimals: 18}}}
	shared := streams // a coin, and what is wrapped of it
	shared.Tokens = append(slices.Clone(streams.Tokens), source.Token{Address: sourcetest.Usdc, Feed: feedV3})
	for _, good := range []source.Table{streams, shared, aggregator,
		{Name: "d", Kind: "devnet", URL: secret.MustURL("http://h")}} {
		if err := problemsOf(good); err != "" {
			t.Errorf("%s: %v", good.Kind, err)
		}
	}
	for want, tt := range map[string]struct {
		of    source.Table
		spoil func(*source.Table)
	}{
		`kind: "twitter" is not one of devnet,`: {streams, func(s *source.Table) { s.Kind = "twitter" }},
		"name: empty":                           {streams, func(s *source.Table) { s.Name = "" }},
		"url: empty":                            {streams, func(s *source.Table) { s.URL = secret.URL{} }},
		"url: a source of kind aggregator knows none": {aggregator,
			func(s *source.Table) { s.URL = secret.MustURL("http://h") }},
		"url: ws://h is not an address of http or https": {streams,
			func(s *source.Table) { s.URL = secret.MustURL("ws://h") }},
		"stream_url: http://h is not an address of ws": {streams,
			func(s *source.Table) { s.StreamURL = secret.MustURL("http://h") }},
		"stream_url: a source of kind aggregator": {aggregator,
			func(s *source.Table) { s.StreamURL = secret.MustURL("ws://h") }},
		"secret: a source of kind aggregator": {aggregator,
			func(s *source.Table) { s.Secret = secret.New("hunter2") }},
		"key: a source of kind aggregator":     {aggregator, func(s *source.Table) { s.Key = secret.New("hunter2") }},
		"key: empty":                           {streams, func(s *source.Table) { s.Key = secret.String{} }},
		"secret: empty":                        {streams, func(s *source.Table) { s.Secret = secret.String{} }},
		"provider: empty":                      {streams, func(s *source.Table) { s.Provider = chain.Address{} }},
		"token: none given":                    {streams, func(s *source.Table) { s.Tokens = nil }},
		"max_age: 1ms is not between 1s":       {streams, func(s *source.Table) { s.MaxAge = time.Millisecond }},
		"fail_after: 1ms is not between 100ms": {streams, func(s *source.Table) { s.FailAfter = time.Millisecond }},
		"token[0].address: no address given": {streams,
			func(s *source.Table) { s.Tokens = []source.Token{{Feed: feedV3}} }},
		"token[1].address: 0x": {streams, func(s *source.Table) { s.Tokens = append(s.Tokens, s.Tokens[0]) }},
		"token[0].decimals: no token": {streams,
			func(s *source.Table) {
				s.Tokens = []source.Token{{Address: sourcetest.Wbnb, Feed: feedV3, Decimals: 37}}
			}},
		`token[0].feed: "0x0008`: {streams,
			func(s *source.Table) {
				s.Tokens = []source.Token{{Address: sourcetest.Wbnb, Feed: "0x0008" + feedV3[6:]}}
			}},
		`token[0].feed: "0x" is not a contract's addr`: {aggregator,
			func(s *source.Table) { s.Tokens = []source.Token{{Address: sourcetest.Wbnb, Feed: "0x"}} }},
	} {
		s := tt.of
		tt.spoil(&s)
		got := problemsOf(s)
		if !strings.HasPrefix(got, want) || strings.Contains(got, "\n") || strings.Contains(got, "hunter2") {
			t.Errorf("%q, want %s…", got, want)
		}
	}
}

// Every folder of a plug-in is listed.
func TestEveryPluginIsListed(t *testing.T) {
	folders, err := os.ReadDir("../source")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, known := pluginOf(f.Name()); f.IsDir() && f.Name() != "sourcetest" && f.Name() != "testdata" && !known {
			t.Errorf("pkg/price/source/%s has no line in plugins (open.go beside this test)", f.Name())
		}
	}
}
