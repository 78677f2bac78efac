package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// blockReply is a block as nodes show it.
type blockReply struct {
	header types.Header
	hash   chain.Hash
	milli  *uint64   // BSC's milliseconds of the timestamp; nil where the node does not say
	txs    []txReply // none in an announced head
	shown  [][]byte  // the same, as they stand in the document
}

// decodeBlock reads a block and recomputes its hash. Transactions that are mere hashes are left out, and the others are
// not held against the header; see Block.checkBody.
func decodeBlock(raw []byte) (Block, error) {
	var reply blockReply
	c := cursor{raw: raw}
	if err := c.block(&reply); err != nil {
		return Block{}, err
	}
	if err := c.end(); err != nil {
		return Block{}, err
	}
	header := &reply.header
	if !header.Number.IsUint64() {
		return Block{}, malformed("block number %s", header.Number)
	}
	hash := chain.Hash(header.Hash())
	if hash != reply.hash {
		return Block{}, lie("the header of block %s hashes to %s, the node says %s (where every endpoint says so it "+
			"is a header that this build does not know: install a build that knows the chain's fork)", header.Number, hash,
			reply.hash)
	}
	block := Block{Header: Header{
		BlockRef: chain.BlockRef{
			Number: header.Number.Uint64(), Hash: hash, Parent: chain.Hash(header.ParentHash),
			TimeMs: timeMs(header, reply.milli),
		},
		Bloom:            Bloom(header.Bloom),
		ReceiptsRoot:     chain.Hash(header.ReceiptHash),
		TransactionsRoot: chain.Hash(header.TxHash),
		GasLimit:         header.GasLimit,
	}, shown: reply.shown}
	for i, tx := range reply.txs {
		if tx.blockHash != hash || int(tx.index) != i {
			return Block{}, lie("transaction %d of block %s says it stands elsewhere", i, hash)
		}
		block.Txs = append(block.Txs, tx.tx(block.Number))
	}
	return block, nil
}

// timeMs is the header's time in milliseconds: BSC has those below the second in the mix digest, which the hash covers.
// Where there are none, the node's own are taken if they lie within the header's second.
func timeMs(h *types.Header, milli *uint64) uint64 {
	const second = 1000
	mix := new(big.Int).SetBytes(h.MixDigest[:])
	switch {
	case mix.Sign() > 0 && mix.IsUint64() && mix.Uint64() < second:
		return h.Time*second + mix.Uint64()
	case milli != nil && *milli/second == h.Time:
		return *milli
	}
	return h.Time * second
}

// headerFields is how many fields a header must have. The first ones are those.
const headerFields = 12

func (c *cursor) block(b *blockReply) error {
	return c.object("a block", headerFields, func(name []byte) (int, error) { return c.blockField(b, string(name)) })
}

// blockField reads the value of a field and returns the field's number, or -1 for one that is not kept.
func (c *cursor) blockField(b *blockReply, name string) (i int, err error) {
	h := &b.header
	switch name {
	case "parentHash":
		return 0, c.fixed(h.ParentHash[:])
	case "sha3Uncles":
		return 1, c.fixed(h.UncleHash[:])
	case "stateRoot":
		return 2, c.fixed(h.Root[:])
	case "transactionsRoot":
		return 3, c.fixed(h.TxHash[:])
	case "receiptsRoot":
		return 4, c.fixed(h.ReceiptHash[:])
	case "logsBloom":
		return 5, c.fixed(h.Bloom[:])
	case "difficulty":
		h.Difficulty, err = c.bigNumber()
		return 6, err
	case "number":
		h.Number, err = c.bigNumber()
		return 7, err
	case "gasLimit":
		h.GasLimit, err = c.number(64)
		return 8, err
	case "gasUsed":
		h.GasUsed, err = c.number(64)
		return 9, err
	case "timestamp":
		h.Time, err = c.number(64)
		return 10, err
	case "extraData":
		h.Extra, err = c.bytes()
		return 11, err
	case "hash":
		return 12, c.fixed(b.hash[:])
	default:
		if c.word("null") {
			return -1, nil
		}
		return c.optionalField(b, name)
	}
}

// optionalField reads the value of a field that not every header has, which is not null.
func (c *cursor) optionalField(b *blockReply, name string) (i int, err error) {
	h := &b.header
	switch name {
	case "transactions":
		return 13, c.transactions(b)
	case "miner":
		return 14, c.fixed(h.Coinbase[:])
	case "mixHash":
		return 15, c.fixed(h.MixDigest[:])
	case "nonce":
		return 16, c.fixed(h.Nonce[:])
	case "baseFeePerGas":
		h.BaseFee, err = c.bigNumber()
		return 17, err
	case "withdrawalsRoot":
		return 18, c.hash(&h.WithdrawalsHash)
	case "blobGasUsed":
		return 19, c.number64(&h.BlobGasUsed)
	case "excessBlobGas":
		return 20, c.number64(&h.ExcessBlobGas)
	case "parentBeaconBlockRoot":
		return 21, c.hash(&h.ParentBeaconRoot)
	case "requestsHash":
		return 22, c.hash(&h.RequestsHash)
	case "blockAccessListHash":
		return 23, c.hash(&h.BlockAccessListHash)
	case "slotNumber":
		return 24, c.number64(&h.SlotNumber)
	case "milliTimestamp":
		return 25, c.number64(&b.milli)
	default:
		return -1, c.skip()
	}
}

func (c *cursor) hash(into **common.Hash) error {
	*into = new(common.Hash)
	return c.fixed((*into)[:])
}

func (c *cursor) number64(into **uint64) error {
	n, err := c.number(64)
	*into = &n
	return err
}

// bigNumber reads a quantity of at most 256 bits, written without leading zeros.
func (c *cursor) bigNumber() (*big.Int, error) {
	const most = 64
	digits, err := c.digits()
	if err != nil {
		return nil, err
	}
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' || len(digits) > most {
		return nil, c.fail("%q is no number of 256 bits", digits)
	}
	for _, d := range digits {
		if _, is := hexDigit(d); !is {
			return nil, c.fail("%q is no hexadecimal digit", d)
		}
	}
	n, is := new(big.Int).SetString(string(digits), 16)
	if !is {
		return nil, c.fail("%q is no number", digits)
	}
	return n, nil
}
