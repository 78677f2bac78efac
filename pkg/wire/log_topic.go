package wire

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire/wirepb"
)

// Epoch is a scanner's claim of the log topic. It is written to partition 0 first; the first record of an epoch number wins it.
type Epoch struct {
	Number uint64
	Owner  string
}

// Log is one raw event log.
type Log struct{ chain.Log }

// Tx is the transaction behind logs, or one of a configured signer.
type Tx struct{ chain.Tx }

// Param is a word of the exchange's DataStore, read by call at Block's hash.
type Param struct {
	Block chain.BlockRef
	Key   chain.Hash
	Value chain.Hash
}

// BlockEnd closes the atomic batch of one block in one partition. Every partition gets one for every block.
type BlockEnd struct {
	Block chain.BlockRef
	// Records is how many records of the batch stand before this one; Digest is [Digest] over them.
	Records uint32
	Digest  [32]byte
	// Verified says that the block's logs were proven complete.
	Verified bool
	// Attempt is 0, or higher when the same block is published again with a corrected set of logs.
	Attempt uint32
}

// Reorg takes back every block above Ancestor.
type Reorg struct{ chain.Reorg }

// Finalized moves the finalized block; it never goes back.
type Finalized struct{ Block chain.BlockRef }

func (Epoch) kind() Kind     { return KindEpoch }
func (Log) kind() Kind       { return KindLog }
func (Tx) kind() Kind        { return KindTx }
func (Param) kind() Kind     { return KindParam }
func (BlockEnd) kind() Kind  { return KindBlockEnd }
func (Reorg) kind() Kind     { return KindReorg }
func (Finalized) kind() Kind { return KindFinalized }

// Digest is a hash over the kinds and values of records, in order.
func Digest(records []Record) [32]byte {
	d := sha256.New()
	for _, r := range records {
		meta, _ := readMeta(r.Headers) // a broken header changes the digest like any other byte
		d.Write([]byte(meta.Kind))
		d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(r.Value))))
		d.Write(r.Value)
	}
	return [32]byte(d.Sum(nil))
}

func (m Epoch) marshal() proto.Message {
	return &wirepb.Epoch{Number: m.Number, Owner: m.Owner}
}

func (m Log) marshal() proto.Message {
	p := &wirepb.Log{
		Address: m.Address[:], Data: m.Data, Block: m.Block, BlockHash: m.BlockHash[:], TxHash: m.TxHash[:],
		TxIndex: m.TxIndex, Index: m.Index,
	}
	for _, t := range m.Topics {
		p.Topics = append(p.Topics, t[:])
	}
	return p
}

func (m Tx) marshal() proto.Message {
	return &wirepb.Tx{
		Hash: m.Hash[:], From: m.From[:], To: m.To[:], Nonce: m.Nonce, Block: m.Block, BlockHash: m.BlockHash[:], Index: m.Index,
		Ok: m.OK, GasUsed: m.GasUsed, GasPrice: m.GasPrice,
	}
}

func (m Param) marshal() proto.Message {
	return &wirepb.Param{Block: blockOut(m.Block), Key: m.Key[:], Value: m.Value[:]}
}

func (m BlockEnd) marshal() proto.Message {
	return &wirepb.BlockEnd{Block: blockOut(m.Block), Records: m.Records, Digest: m.Digest[:], Verified: m.Verified, Attempt: m.Attempt}
}

func (m Reorg) marshal() proto.Message {
	return &wirepb.Reorg{Ancestor: blockOut(m.Ancestor), OldTip: blockOut(m.OldTip)}
}

func (m Finalized) marshal() proto.Message {
	return &wirepb.Finalized{Block: blockOut(m.Block)}
}

func decodeEpoch(f *fields, p *wirepb.Epoch) Message {
	return Epoch{Number: p.GetNumber(), Owner: p.GetOwner()}
}

func decodeLog(f *fields, p *wirepb.Log) Message {
	l := chain.Log{
		Address: f.address(p.GetAddress()), Data: p.GetData(), Block: p.GetBlock(), BlockHash: f.hash(p.GetBlockHash()),
		TxHash: f.hash(p.GetTxHash()), TxIndex: p.GetTxIndex(), Index: p.GetIndex(),
	}
	for _, t := range p.GetTopics() {
		l.Topics = append(l.Topics, f.hash(t))
	}
	return Log{l}
}

func decodeTx(f *fields, p *wirepb.Tx) Message {
	return Tx{chain.Tx{
		Hash: f.hash(p.GetHash()), From: f.address(p.GetFrom()), To: f.address(p.GetTo()), Nonce: p.GetNonce(), Block: p.GetBlock(),
		BlockHash: f.hash(p.GetBlockHash()), Index: p.GetIndex(), OK: p.GetOk(), GasUsed: p.GetGasUsed(), GasPrice: p.GetGasPrice(),
	}}
}

func decodeParam(f *fields, p *wirepb.Param) Message {
	return Param{Block: f.block(p.GetBlock()), Key: f.hash(p.GetKey()), Value: f.hash(p.GetValue())}
}

func decodeBlockEnd(f *fields, p *wirepb.BlockEnd) Message {
	return BlockEnd{
		Block: f.block(p.GetBlock()), Records: p.GetRecords(), Digest: f.hash(p.GetDigest()), Verified: p.GetVerified(), Attempt: p.GetAttempt(),
	}
}

func decodeReorg(f *fields, p *wirepb.Reorg) Message {
	return Reorg{chain.Reorg{Ancestor: f.block(p.GetAncestor()), OldTip: f.block(p.GetOldTip())}}
}

func decodeFinalized(f *fields, p *wirepb.Finalized) Message {
	return Finalized{Block: f.block(p.GetBlock())}
}
