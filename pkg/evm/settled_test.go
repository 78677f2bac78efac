package evm

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"perpkeeper/pkg/chain"
)

// What is asked of a contract is two hosts' word where there are two, be it an answer, a refusal or code: one that is
// wrong or away decides nothing.
func TestSettledStateTakesTwo(t *testing.T) {
	says := func(word string) script {
		return func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
			switch {
			case method != methodCall && method != methodCode:
				return nil, nil, false
			case word == "away":
				return nil, refusal(-32000, "away"), true
			case word == "revert":
				return nil, refusal(3, "execution reverted"), true
			}
			return word, nil, true
		}
	}
	for name, c := range map[string]struct {
		said []string
		want string // empty where nothing is decided
		code bool   // it is asked for code as well, which nothing reverts
	}{
		"all alike":               {[]string{"0x07", "0x07", "0x07"}, "\x07", true},
		"one lies":                {[]string{"0x09", "0x07", "0x07"}, "\x07", true},
		"one is away":             {[]string{"away", "0x07", "0x07"}, "\x07", true},
		"one of two lies":         {[]string{"0x09", "0x07"}, "", true},
		"the only one":            {[]string{"0x07"}, "\x07", true},
		"one refuses for a limit": {[]string{"revert", "0x07", "0x07"}, "\x07", false},
		"two refuse":              {[]string{"revert", "0x07", "revert"}, "refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(len(c.said), 50)
				for i, n := range nodes {
					n.inject(says(c.said[i]))
				}
				client, _ := dialFakes(t, nil, nodes...)
				state := client.Settled(chain.Hash{1})
				got, answered, err := state.Ask(t.Context(), chain.Address{1}, nil)
				if !answered && err == nil {
					got = []byte("refused")
				}
				if string(got) != c.want || (err != nil) != (c.want == "") || err != nil && !Undecided(err) {
					t.Errorf("a call: %q, %v, want %q", got, err, c.want)
				}
				if !c.code {
					return
				}
				if code, err := state.Code(t.Context(), chain.Address{1}); string(code) != c.want ||
					(err != nil) != (c.want == "") {
					t.Errorf("code: %q, %v, want %q", code, err, c.want)
				}
			})
		})
	}
}
