package evm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Blocks of one second are told apart by the milliseconds that their headers have, also where the node names none or
// others; only where a header has none the node is asked.
func TestMillisecondsOfHeaders(t *testing.T) {
	const second = 1_796_697_000
	says := func(ms int) string { return fmt.Sprintf("0x%x", second*1000+ms) }
	mix := func(ms int64) common.Hash { return common.BigToHash(big.NewInt(ms)) }
	random := common.BytesToHash(bytes.Repeat([]byte{0xab}, 32)) // as of a chain that keeps something else there
	for name, c := range map[string]struct {
		mix  common.Hash
		said string // the node's own word
		want uint64
	}{
		"the header alone":            {mix(450), "", second*1000 + 450},
		"the node agrees":             {mix(450), says(450), second*1000 + 450},
		"the node says others":        {mix(450), says(900), second*1000 + 450},
		"the node alone":              {common.Hash{}, says(900), second*1000 + 900},
		"the node is seconds away":    {common.Hash{}, says(1900), second * 1000},
		"nobody":                      {common.Hash{}, "", second * 1000},
		"no milliseconds":             {mix(1000), "", second * 1000},
		"another thing in the header": {random, says(900), second*1000 + 900},
	} {
		header := &types.Header{Number: big.NewInt(7), Difficulty: big.NewInt(2), Time: second, MixDigest: c.mix,
			BaseFee: new(big.Int)}
		raw, err := json.Marshal(header)
		if err != nil {
			t.Fatal(err)
		}
		if c.said != "" {
			raw = append(bytes.TrimSuffix(raw, []byte("}")), []byte(`,"milliTimestamp":"`+c.said+`"}`)...)
		}
		if block, err := decodeBlock(raw); err != nil || block.TimeMs != c.want {
			t.Errorf("%s: %d, %v, want %d", name, block.TimeMs, err, c.want)
		}
	}
}
