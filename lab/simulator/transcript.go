package simulator

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// transcript is the play, line by line.
type transcript struct {
	wanted bool
	lines  []string
}

// addf adds a line with the present time.
func (t *transcript) addf(s *simulation, format string, args ...any) {
	if t.wanted {
		t.lines = append(t.lines, fmt.Sprintf("%9.3f  %s", s.events.now.Seconds(), fmt.Sprintf(format, args...)))
	}
}

// block adds the results of the keepers' transactions in a block.
func (t *transcript) block(s *simulation, ref chain.BlockRef) {
	if !t.wanted {
		return
	}
	for _, sent := range s.chain.Sent(ref.Hash) {
		if sent.Kind == "" {
			continue
		}
		how := "done"
		if !sent.Tx.OK {
			how = "reverted"
		}
		t.addf(s, "block %d: %s by %s: %s", ref.Number, s.nameOf(s.numberOf(sent.Key)),
			tierName(s.tierOf(sent.Tx.From)), how)
	}
}

func (s *simulation) nameOf(n int) string {
	if n == 0 {
		return "a stray"
	}
	return s.planned[n-1].name()
}

// tierOf is the tier of a transaction's sender, 0 for somebody else.
func (s *simulation) tierOf(from chain.Address) int {
	for _, k := range s.keepers {
		if k.key.Account == from {
			return k.tier
		}
	}
	return 0
}
