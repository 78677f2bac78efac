package evm_test

import (
	"strings"
	"testing"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/setting/secret"
)

func TestConfig(t *testing.T) {
	if err := evm.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	for want, spoil := range map[string]func(*evm.Config){
		"urls: is empty": func(c *evm.Config) { c.URLs = nil },
		`urls: number 2 is "ftp://h/***"`: func(c *evm.Config) {
			c.URLs = append(c.URLs,
				mustURL("ftp://h/secret"))
		},
		`private_urls: number 1 is "ftp://h/***"`: func(c *evm.Config) {
			c.PrivateURLs = append(c.PrivateURLs,
				mustURL("ftp://h/secret"))
		},
		"headers: there are 2 for 1 urls (one for each": func(c *evm.Config) {
			c.Headers = []secret.String{secret.New("-"), secret.New("x-api-key: hush")}
		},
		"private_headers: there are 1 for 0 private_urls": func(c *evm.Config) {
			c.PrivateHeaders = append(c.PrivateHeaders, secret.New("-"))
		},
		"private_kinds: there are 1 for 0 private_urls": func(c *evm.Config) {
			c.PrivateKinds = []string{"bundle"}
		},
		`private_kinds: number 2 is "bundles" (there are transaction and bundle)`: func(c *evm.Config) {
			c.PrivateURLs = []secret.URL{secret.MustURL("http://h"), secret.MustURL("http://h")}
			c.PrivateKinds = []string{"bundle", "bundles"}
		},
		"private_headers: number 1 is no header": func(c *evm.Config) {
			c.PrivateURLs = append(c.PrivateURLs, mustURL("https://h"))
			c.PrivateHeaders = append(c.PrivateHeaders, secret.New("Bearer hush"))
		},
	} {
		cfg := evm.DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}
