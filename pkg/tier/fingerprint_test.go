package tier

import (
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
)

// TIER-15: keepers that name each other have one fingerprint; one that has anything else of what they must have alike
// has another.
func TestFingerprint(t *testing.T) {
	signers := [][]chain.Address{{{0x11}, {0x12}}, {{0x21}}, {{0x31}}}
	keeper := func(self int) Config {
		c := DefaultConfig()
		c.Enabled, c.Priority = true, self+1
		for i, s := range signers {
			if i != self {
				c.Peers = append(c.Peers, Peer{Tier: i + 1, Signers: s})
			}
		}
		slices.Reverse(c.Peers)
		return c
	}
	want := keeper(0).Fingerprint(signers[0])
	for self, own := range signers {
		c := keeper(self)
		c.JobMaxAge = time.Hour // each keeper's own business
		if got := c.Fingerprint(own); got != want || len(got) != 8 {
			t.Errorf("tier %d has %q, the Master %q", self+1, got, want)
		}
	}
	for what, change := range map[string]func(*Config){
		"window": func(c *Config) { c.Window += time.Second },
		"tiers":  func(c *Config) { c.Tiers = 4 },
		"policy": func(c *Config) { c.Policy = PolicyDelay },
		"peers":  func(c *Config) { c.Peers[0].Tier = 4 },
	} {
		c := keeper(0)
		if change(&c); c.Fingerprint(signers[0]) == want {
			t.Errorf("another %s has the same fingerprint", what)
		}
	}
}
