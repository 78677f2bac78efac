package evm

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
)

// disputed are the disputes of a client a few seconds later.
func disputed(c *Client) (all []Dispute) {
	time.Sleep(2 * c.pool.cfg.ProbeInterval)
	for len(c.pool.disputes.kept) > 0 {
		all = append(all, <-c.pool.disputes.kept)
	}
	return all
}

// An endpoint that is caught in a lie is named with what it said word for word, and with what the next one said to the
// same question.
func TestLiesAreDisputed(t *testing.T) {
	for _, l := range lies(newFakeChain(50, 0, func(n int) int { return (n + 1) % 3 })) {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 50)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].inject(l.told)
				prefer(c.pool.public[0])
				readTwoLogs(t, c, truth)
				all := disputed(c)
				if len(all) == 0 {
					t.Fatal("nothing is kept of it")
				}
				d := all[0]
				if d.Endpoint != c.pool.public[0].name || d.Reason != ReasonLied || d.For != l.out ||
					len(d.Said) != 2 || d.Said[0].Endpoint != d.Endpoint ||
					d.Said[1].Endpoint != c.pool.public[1].name ||
					d.Said[0].Body == d.Said[1].Body || !strings.HasPrefix(d.Question, "eth_get") {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// Where hosts contradict each other about a nonce everybody's word is kept, whether one of them can be told to be wrong
// or not; and no more than the bound of it.
func TestContradictionsAreDisputed(t *testing.T) {
	for name, c := range map[string]struct {
		said []string
		want Reason
	}{
		"one of three": {[]string{"0x8", "0x7", "0x7"}, ReasonContradicted},
		"one of two":   {[]string{"0x8", "0x7"}, ReasonUndecided},
		"nobody":       {[]string{"0x7", "0x7"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(len(c.said), 50)
				for i, n := range nodes {
					n.inject(func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
						return c.said[i], nil, method == methodNonce
					})
				}
				client, _ := dialFakes(t, nil, nodes...)
				for range 3 {
					_, _ = client.SettledNonce(t.Context(), chain.Address{1}, 48)
				}
				all := disputed(client)
				if c.want == "" || len(all) != 1 {
					if c.want != "" || len(all) > 0 {
						t.Errorf("%+v", all)
					}
					return
				}
				d := all[0]
				said := map[Source]string{}
				for _, s := range d.Said {
					said[s.Endpoint] = s.Body
				}
				if d.Reason != c.want || d.For != ForNonces || said["http://a/"] != "8" || said["http://b/"] != "7" ||
					len(said) != len(c.said) {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// Of long answers that place is kept where they begin to differ.
func TestDisputesShowTheDifference(t *testing.T) {
	same := strings.Repeat("a", 3*longestSaid)
	d := Dispute{Said: []Said{{"a", same + "LIE" + same}, {"b", same + "TRUTH" + same}, {"c", same}}}
	d.cut()
	if !strings.Contains(d.Said[0].Body, "LIE") || !strings.Contains(d.Said[1].Body, "TRUTH") {
		t.Errorf("%+v", d)
	}
	for _, s := range d.Said {
		if len(s.Body) > longestSaid {
			t.Errorf("%d bytes of %s", len(s.Body), s.Endpoint)
		}
	}
}

// What is kept is bounded: the beginning of an answer, and so many an hour.
func TestDisputesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		e, kept := c.pool.public[0], 0
		for n := range mostDisputes + 10 {
			c.pool.disputes.begin(Dispute{Endpoint: e.name, For: Purpose(strings.Repeat("p", n)), Reason: ReasonLied,
				Said: []Said{{e.name, strings.Repeat("x", 2*longestSaid)}}})
			if n%8 == 7 {
				for _, d := range disputed(c) {
					if kept++; len(d.Said[0].Body) != longestSaid {
						t.Errorf("%d bytes", len(d.Said[0].Body))
					}
				}
			}
		}
		if kept != mostDisputes {
			t.Errorf("%d disputes are kept", kept)
		}
	})
}
