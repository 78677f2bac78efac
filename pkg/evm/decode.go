package evm

import "perpkeeper/pkg/chain"

// fields notes which fields of an object have been read.
type fields uint

// once reports whether the i-th field comes for the first time.
func (f *fields) once(i int) bool {
	bit := fields(1) << i
	first := *f&bit == 0
	*f |= bit
	return first
}

// all reports whether the first n fields are there.
func (f *fields) all(n int) bool { return *f&(1<<n-1) == 1<<n-1 }

// logReply is a log as nodes show it.
type logReply struct {
	chain.Log
	removed bool
}

func (c *cursor) logs() ([]logReply, error) {
	var logs []logReply
	err := c.array(func(int) error {
		logs = append(logs, logReply{})
		return c.log(&logs[len(logs)-1])
	})
	return logs, err
}

// logFields is how many fields a log must have: all but removed. Logs of a pending block, which nobody asked for, lack
// some.
const logFields = 8

// log reads one log. Unlike go-ethereum's reader it takes no log without its place in the chain.
func (c *cursor) log(l *logReply) error {
	return c.object("a log", logFields, func(name []byte) (int, error) { return c.logField(l, string(name)) })
}

// logField reads the value of a field and returns the field's number, or -1 for one that is not kept.
func (c *cursor) logField(l *logReply, name string) (i int, err error) {
	switch name {
	case "address":
		return 0, c.fixed(l.Address[:])
	case "topics":
		l.Topics, err = c.hashes()
		return 1, err
	case "data":
		l.Data, err = c.bytes()
		return 2, err
	case "blockNumber":
		l.Block, err = c.number(64)
		return 3, err
	case "blockHash":
		return 4, c.fixed(l.BlockHash[:])
	case "transactionHash":
		return 5, c.fixed(l.TxHash[:])
	case "transactionIndex":
		return 6, c.number32(&l.TxIndex)
	case "logIndex":
		return 7, c.number32(&l.Index)
	case "removed":
		if l.removed = c.word("true"); !l.removed && !c.word("false") {
			return 8, c.fail("removed is neither true nor false")
		}
		return 8, nil
	default:
		return -1, c.skip()
	}
}

func (c *cursor) number32(into *uint32) error {
	n, err := c.number(32)
	*into = uint32(n)
	return err
}

// mostTopics is how many topics the EVM can give a log.
const mostTopics = 4

func (c *cursor) hashes() ([]chain.Hash, error) {
	list := make([]chain.Hash, 0, mostTopics)
	err := c.array(func(i int) error {
		if i >= mostTopics {
			return c.fail("a log with more than %d topics", mostTopics)
		}
		list = append(list, chain.Hash{})
		return c.fixed(list[i][:])
	})
	return list, err
}

// receiptReply is a receipt as nodes show it.
type receiptReply struct {
	kind          uint64
	status        uint64
	cumulativeGas uint64
	gasPrice      uint64 // wei
	gasUsed       uint64
	block         uint64
	blockHash     chain.Hash
	txHash        chain.Hash
	index         uint32
	from, to      chain.Address
	logs          []logReply
}

// decodeReceipts reads the answer to eth_getBlockReceipts; nil, if the node does not have the block.
func decodeReceipts(raw []byte) (receipts []receiptReply, err error) {
	c := cursor{raw: raw}
	if c.word("null") {
		return nil, c.end()
	}
	receipts = []receiptReply{}
	err = c.array(func(int) error {
		receipts = append(receipts, receiptReply{})
		return c.receipt(&receipts[len(receipts)-1])
	})
	if err != nil {
		return nil, err
	}
	return receipts, c.end()
}

// decodeReceipt reads the answer to eth_getTransactionReceipt; nil, if the transaction is not mined.
func decodeReceipt(raw []byte) (*receiptReply, error) {
	c := cursor{raw: raw}
	if c.word("null") {
		return nil, c.end()
	}
	var r receiptReply
	if err := c.receipt(&r); err != nil {
		return nil, err
	}
	return &r, c.end()
}

// receiptFields is how many fields a receipt must have: all that are kept but to. A receipt from before Byzantium lacks
// the status; BSC has none.
const receiptFields = 11

func (c *cursor) receipt(r *receiptReply) error {
	return c.object("a receipt", receiptFields, func(name []byte) (int, error) {
		return c.receiptField(r, string(name))
	})
}

// receiptField reads the value of a field and returns the field's number, or -1 for one that is not kept.
func (c *cursor) receiptField(r *receiptReply, name string) (i int, err error) {
	switch name {
	case "type":
		r.kind, err = c.number(8)
		return 0, err
	case "status":
		r.status, err = c.number(64)
		return 1, err
	case "cumulativeGasUsed":
		r.cumulativeGas, err = c.number(64)
		return 2, err
	case "effectiveGasPrice":
		r.gasPrice, err = c.number(64)
		return 3, err
	case "blockNumber":
		r.block, err = c.number(64)
		return 4, err
	case "blockHash":
		return 5, c.fixed(r.blockHash[:])
	case "transactionHash":
		return 6, c.fixed(r.txHash[:])
	case "transactionIndex":
		return 7, c.number32(&r.index)
	case "from":
		return 8, c.fixed(r.from[:])
	case "logs":
		r.logs, err = c.logs()
		return 9, err
	case "gasUsed":
		r.gasUsed, err = c.number(64)
		return 10, err
	case "to":
		if c.word("null") {
			return 11, nil
		}
		return 11, c.fixed(r.to[:])
	default:
		return -1, c.skip()
	}
}
