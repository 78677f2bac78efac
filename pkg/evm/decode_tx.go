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

// signedTx is what a transaction's hash commits to, as it stands in the document, which it must not outlive.
type signedTx struct {
	kind      uint64
	typed     bool // the kind is shown
	nonce     uint64
	to        []byte               // nil where it makes a contract
	addressed bool                 // that or the receiver is shown
	fields    [signedFields][]byte // hexadecimal digits or JSON; nil where there is none, or none that can be read
}

// The fields of a signed transaction. Those from signedFields on are kept apart.
const (
	txChainID = iota
	txGasPrice
	txTip
	txFeeCap
	txGas
	txValue
	txInput
	txAccess
	txBlobFee
	txBlobs
	txAuthorizations
	txV
	txParity
	txR
	txS
	signedFields

	txNonce
	txTo
)

// signedNames are how nodes call them.
var signedNames = map[string]int{
	"chainId": txChainID, "gasPrice": txGasPrice, "maxPriorityFeePerGas": txTip, "maxFeePerGas": txFeeCap, "gas": txGas,
	"value": txValue, "input": txInput, "accessList": txAccess, "maxFeePerBlobGas": txBlobFee,
	"blobVersionedHashes": txBlobs, "authorizationList": txAuthorizations, "v": txV, "yParity": txParity, "r": txR,
	"s": txS,
}

// transactions reads a list of transactions, of which some may be hashes.
func (c *cursor) transactions(b *blockReply) error {
	encoder := newTxEncoder()
	defer encoder.release()
	b.body = &body{}
	var signed signedTx
	return c.array(func(int) error {
		if c.peek() == '"' {
			b.body.hashes++
			return c.skip()
		}
		b.txs = append(b.txs, txReply{})
		signed = signedTx{}
		if err := c.transaction(&b.txs[len(b.txs)-1], &signed); err != nil {
			return err
		}
		if b.body.signed == nil {
			const share = 3 // of the document, at most and about, is what was signed
			b.body.signed = make([]byte, 0, len(c.raw)/share)
		}
		b.body.add(encoder, &signed)
		return nil
	})
}

const (
	// txFields is how many fields a transaction of a block must have.
	txFields = 5
	// txPlaced is how many fields it has beside those that its hash commits to.
	txPlaced = 7
)

func (c *cursor) transaction(t *txReply, s *signedTx) error {
	return c.object("a transaction", txFields,
		func(name []byte) (int, error) { return c.txField(t, s, string(name)) })
}

// txField reads the value of a field and returns the field's number, or -1 for one that is not kept.
func (c *cursor) txField(t *txReply, s *signedTx, name string) (i int, err error) {
	switch name {
	case "hash":
		return 0, c.fixed(t.hash[:])
	case "from":
		return 1, c.fixed(t.from[:])
	case "nonce":
		t.nonce, err = c.number(64)
		s.nonce = t.nonce
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
		s.addressed = true
		if c.word("null") {
			return 5, nil
		}
		s.to = t.to[:]
		return 5, c.fixed(t.to[:])
	case "type":
		if c.word("null") {
			return 6, nil
		}
		s.typed = true
		s.kind, err = c.number(64)
		return 6, err
	default:
		return c.signedField(s, name)
	}
}

// signedField notes the value of a field. One that cannot be read as what it should be is left out: it matters only
// where the block's root is computed, and the rest of the block can be read.
func (c *cursor) signedField(s *signedTx, name string) (i int, err error) {
	at, kept := signedNames[name]
	if !kept {
		return -1, c.skip()
	}
	c.peek()
	from := c.at
	switch at {
	case txAccess, txBlobs, txAuthorizations:
		if !c.word("null") {
			err = c.skip()
			s.fields[at] = c.raw[from:c.at]
		}
	default:
		digits, wrong := c.digits()
		if wrong != nil {
			c.at = from
			return txPlaced + at, c.skip()
		}
		s.fields[at] = digits
	}
	return txPlaced + at, err
}
