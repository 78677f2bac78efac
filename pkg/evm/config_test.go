package evm_test

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/evm"
)

func TestConfig(t *testing.T) {
	if err := evm.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	for want, spoil := range map[string]func(*evm.Config){
		"urls: is empty":                      func(c *evm.Config) { c.URLs = nil },
		`urls: number 2 is "ftp://h/***"`:     func(c *evm.Config) { c.URLs = append(c.URLs, mustURL("ftp://h/secret")) },
		"poll_interval: 1ms is not between":   func(c *evm.Config) { c.PollInterval = time.Millisecond },
		"request_timeout: 2h0m0s is not betw": func(c *evm.Config) { c.RequestTimeout = 2 * time.Hour },
	} {
		cfg := evm.DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}
