package evm

import "perpkeeper/pkg/chain"

// txReply is a transaction as blocks show it.
type txReply struct {
	hash      chain.Hash
	from, to  chain.Address
	nonce     uint64
	blockHash chain.Hash // zero while the transaction waits
	index     uint32
}

// tx is a transaction that stands in a block of that number.
func (t txReply) tx(number uint64) chain.Tx {
	return chain.Tx{Hash: t.hash, From: t.from, To: t.to, Nonce: t.nonce, Block: number, BlockHash: t.blockHash,
		Index: t.index}
}

// transactions reads a list of transactions, of which some may be hashes. Each stays as it stands in the document.
func (c *cursor) transactions(b *blockReply) error {
	return c.array(func(int) error {
		if c.peek() == '"' {
			return c.skip()
		}
		from := c.at
		b.txs = append(b.txs, txReply{})
		err := c.transaction(&b.txs[len(b.txs)-1])
		b.shown = append(b.shown, c.raw[from:c.at])
		return err
	})
}

// txFields is how many fields a transaction of a block must have.
const txFields = 5

func (c *cursor) transaction(t *txReply) error {
	return c.object("a transaction", txFields, func(name []byte) (int, error) { return c.txField(t, string(name)) })
}

// txField reads the value of a field and returns the field's number, or -1 for one that is not kept.
func (c *cursor) txField(t *txReply, name string) (i int, err error) {
	switch name {
	case "hash":
		return 0, c.fixed(t.hash[:])
	case "from":
		return 1, c.fixed(t.from[:])
	case "nonce":
		t.nonce, err = c.number(64)
		return 2, err
	case "blockHash":
		if c.word("null") {
			return 3, nil
		}
		return 3, c.fixed(t.blockHash[:])
	case "transactionIndex":
		if c.word("null") {
			return 4, nil
		}
		return 4, c.number32(&t.index)
	case "to":
		if c.word("null") {
			return 5, nil
		}
		return 5, c.fixed(t.to[:])
	default:
		return -1, c.skip()
	}
}
