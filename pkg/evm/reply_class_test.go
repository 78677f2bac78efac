package evm

import (
	"strings"
	"testing"
)

// What a node's own error says about the endpoint, bare, behind prefixes, in any case.
func TestReplyClasses(t *testing.T) {
	for _, a := range []struct {
		code int
		text string
		want replyKind
	}{
		{codeLimit, "limit exceeded", replyThrottled},
		{codeMethodNotFound, "the method eth_getBlockReceipts does not exist/is not available", replyDisabled},
		{codeLimit, "method eth_call in batch triggered rate limit", replyThrottled},
		{429, "Your app has exceeded its compute units per second capacity", replyThrottled},
		{codeLimit, "rate limit", replyThrottled},
		{codeLimit, "daily request count exceeded, request rate limited", replyThrottled},
		{-32011, "no backend is currently healthy", replyOK},
		{-32000, "limit exceeded somewhere", replyOK}, // not -32005: nothing is known about it
		{-32000, "internal error", replyOK},
		{-32000, "", replyOK},
	} {
		for _, text := range []string{a.text, "x: " + a.text, "upstream: err: " + a.text, strings.ToUpper(a.text)} {
			if got := replyClass(replyError{code: a.code, text: text}); got != a.want {
				t.Errorf("%d %q: %v, want %v", a.code, text, got, a.want)
			}
		}
	}
}
