package outbox

import (
	"fmt"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

// receiptArrays are receipts as the parameters of one statement, a column each.
type receiptArrays struct {
	hashes, blockHashes        [][]byte
	blocks, gasUsed, gasPrices []uint64
	oks                        []bool
	outcomes, reasons          []string
	settlements                []*string // NULL where there is none
}

func receiptColumnsOf(receipts []txm.Receipt) (c receiptArrays, err error) {
	for _, r := range receipts {
		settlement, err := encodeSettlement(r.Settlement)
		if err != nil {
			return c, fmt.Errorf("writing the settlement of transaction %s: %w", r.TxHash, err)
		}
		c.hashes, c.blockHashes = append(c.hashes, r.TxHash[:]), append(c.blockHashes, r.Block.Hash[:])
		c.blocks, c.oks = append(c.blocks, r.Block.Number), append(c.oks, r.OK)
		c.gasUsed, c.gasPrices = append(c.gasUsed, r.GasUsed), append(c.gasPrices, r.GasPrice)
		c.outcomes, c.reasons = append(c.outcomes, string(r.Outcome)), append(c.reasons, pg.Escape(r.Reason))
		c.settlements = append(c.settlements, settlement)
	}
	return c, nil
}

// finalArrays are the ends of intents as the parameters of one statement, a column each.
type finalArrays struct {
	hashes, blockHashes [][]byte
	states              []string
	rearms              []uint64
	givenUp             []bool
}

func finalColumnsOf(finals []txm.FinalReceipt) (c finalArrays) {
	for _, f := range finals {
		c.hashes, c.blockHashes = append(c.hashes, f.TxHash[:]), append(c.blockHashes, f.Block.Hash[:])
		c.states = append(c.states, string(txm.Final(f.Outcome)))
		c.rearms, c.givenUp = append(c.rearms, f.RearmMs), append(c.givenUp, f.GivenUp)
	}
	return c
}
