package evm

import (
	"strings"
	"testing"
)

// Which of a node's own errors say that it wants fewer requests, bare, behind prefixes, in any case.
func TestWhoWantsFewerRequests(t *testing.T) {
	for _, a := range []struct {
		code int
		text string
		want bool
	}{
		{-32005, "limit exceeded", true},
		{-32601, "the method eth_getBlockReceipts does not exist/is not available", false},
		{-32005, "method eth_call in batch triggered rate limit", true},
		{429, "Your app has exceeded its compute units per second capacity", true},
		{-32005, "rate limit", true},
		{-32005, "daily request count exceeded, request rate limited", true},
		{-32011, "no backend is currently healthy", false},
		{-32000, "limit exceeded somewhere", false}, // not -32005: nothing is known about it
		{-32000, "internal error", false},
		{-32000, "", false},
	} {
		for _, text := range []string{a.text, "x: " + a.text, "upstream: err: " + a.text, strings.ToUpper(a.text)} {
			if got := wantsFewer(replyError{code: a.code, text: text}); got != a.want {
				t.Errorf("%d %q: %v, want %v", a.code, text, got, a.want)
			}
		}
	}
}
