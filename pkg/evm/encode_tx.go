package evm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"perpkeeper/pkg/chain"
)

// layouts are the fields of each type of transaction, in the order in which they are hashed. They are written straight
// from a node's hexadecimal digits: every body that is read goes this way.
var layouts = [][]int{
	types.LegacyTxType: {txNonce, txGasPrice, txGas, txTo, txValue, txInput, txV, txR, txS},
	types.AccessListTxType: {txChainID, txNonce, txGasPrice, txGas, txTo, txValue, txInput, txAccess, txParity, txR,
		txS},
	types.DynamicFeeTxType: {txChainID, txNonce, txTip, txFeeCap, txGas, txTo, txValue, txInput, txAccess, txParity,
		txR, txS},
	types.BlobTxType: {txChainID, txNonce, txTip, txFeeCap, txGas, txTo, txValue, txInput, txAccess, txBlobFee, txBlobs,
		txParity, txR, txS},
	types.SetCodeTxType: {txChainID, txNonce, txTip, txFeeCap, txGas, txTo, txValue, txInput, txAccess,
		txAuthorizations, txParity, txR, txS},
}

// txEncoder writes transactions as they were signed.
type txEncoder struct {
	out       rlp.EncoderBuffer
	text, raw []byte // of the value at hand
	lacks     string // what the last transaction does not show; it was taken for empty
}

func newTxEncoder() *txEncoder { return &txEncoder{out: rlp.NewEncoderBuffer(nil)} }

// release gives the buffer back.
func (e *txEncoder) release() { _ = e.out.Flush() } // it writes to nobody, and so does not fail

// encode appends a transaction. An error says what of it is not known here.
func (e *txEncoder) encode(to []byte, s *signedTx) ([]byte, error) {
	if s.kind >= uint64(len(layouts)) {
		return to, fmt.Errorf("a transaction of type %d", s.kind)
	}
	e.lacks = ""
	if !s.typed {
		e.lacks = "a transaction without its type"
	}
	e.out.Reset(nil)
	list := e.out.List()
	for _, at := range layouts[s.kind] {
		if err := e.field(s, at); err != nil {
			return to, err
		}
	}
	e.out.ListEnd(list)
	if s.kind != types.LegacyTxType {
		to = append(to, byte(s.kind))
	}
	return e.out.AppendToBytes(to), nil
}

func (e *txEncoder) field(s *signedTx, at int) error {
	switch at {
	case txNonce:
		e.out.WriteUint64(s.nonce)
		return nil
	case txTo:
		if !s.addressed {
			e.lacks = "a transaction without its receiver"
		}
		e.out.WriteBytes(s.to)
		return nil
	case txInput:
		if s.fields[at] == nil {
			return errors.New("a transaction without its input")
		}
		return e.bytes(s.fields[at])
	case txAccess:
		return e.list(s.fields[at], e.access)
	case txBlobs:
		return e.list(s.fields[at], e.fixed)
	case txAuthorizations:
		return e.list(s.fields[at], e.authorization)
	case txParity:
		if s.fields[at] == nil { // older nodes give it as v
			return e.parity(s.fields[txV])
		}
		return e.parity(s.fields[at])
	}
	return e.quantity(s.fields[at])
}

// parity writes which of two points has signed. Some nodes write it as Bitcoin does.
func (e *txEncoder) parity(digits []byte) error {
	if digits == nil {
		return errors.New("a transaction that lacks a number")
	}
	switch string(bytes.TrimLeft(digits, "0")) {
	case "", "1b", "1B":
		e.out.WriteUint64(0)
	case "1", "1c", "1C":
		e.out.WriteUint64(1)
	default:
		return errors.New("a transaction whose parity is not shown")
	}
	return nil
}

// quantity writes a number of at most 256 bits. Some nodes write leading zeros, or zero as no digits.
func (e *txEncoder) quantity(digits []byte) error {
	const most = 64
	if digits == nil {
		return errors.New("a transaction that lacks a number")
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) > most {
		return fmt.Errorf("a number of %d digits in a transaction", len(digits))
	}
	e.text = e.text[:0]
	if len(digits)%2 == 1 {
		e.text = append(e.text, '0')
	}
	e.text = append(e.text, digits...)
	return e.bytes(e.text)
}

// bytes writes any number of bytes.
func (e *txEncoder) bytes(digits []byte) error {
	length := hex.DecodedLen(len(digits))
	e.raw = slices.Grow(e.raw[:0], length)[:length]
	if _, err := hex.Decode(e.raw, digits); err != nil {
		return fmt.Errorf("a transaction that cannot be read: %w", err)
	}
	e.out.WriteBytes(e.raw)
	return nil
}

// list writes a list of JSON; what is not there is empty.
func (e *txEncoder) list(raw []byte, item func(*cursor) error) error {
	list := e.out.List()
	if raw == nil {
		e.lacks = "a transaction without one of its lists"
	} else {
		c := cursor{raw: raw}
		if err := c.array(func(int) error { return item(&c) }); err != nil {
			return err
		}
	}
	e.out.ListEnd(list)
	return nil
}

// fixed writes a hash.
func (e *txEncoder) fixed(c *cursor) error {
	var h chain.Hash
	err := c.fixed(h[:])
	e.out.WriteBytes(h[:])
	return err
}

// access writes what a transaction says it will touch of an account (EIP-2930).
func (e *txEncoder) access(c *cursor) error {
	var account chain.Address
	var keys []byte
	err := c.object("an access", 1, func(name []byte) (i int, err error) {
		switch string(name) {
		case "address":
			return 0, c.fixed(account[:])
		case "storageKeys":
			if c.word("null") {
				return 1, nil
			}
			keys, err = c.value()
			return 1, err
		default:
			return -1, c.skip()
		}
	})
	if err != nil {
		return err
	}
	list := e.out.List()
	e.out.WriteBytes(account[:])
	err = e.list(keys, e.fixed)
	e.out.ListEnd(list)
	return err
}

// authorization writes what an account has signed for somebody else's transaction (EIP-7702).
func (e *txEncoder) authorization(c *cursor) error {
	const fields = 6
	var digits [fields][]byte
	err := c.object("an authorization", fields, func(name []byte) (i int, err error) {
		i = slices.Index([]string{"chainId", "address", "nonce", "yParity", "r", "s"}, string(name))
		if i < 0 {
			return i, c.skip()
		}
		digits[i], err = c.digits()
		return i, err
	})
	if err != nil {
		return err
	}
	const address = 1
	list := e.out.List()
	for i, value := range digits {
		write := e.quantity
		if i == address {
			write = e.bytes
		}
		if err := write(value); err != nil {
			return err
		}
	}
	e.out.ListEnd(list)
	return nil
}
