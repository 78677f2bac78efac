package wire

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire/wirepb"
	"perpkeeper/pkg/perp"
)

// Epoch is a scanner's claim of the log topic. It is written to partition 0 first; the first record of an epoch number
// wins it.
type Epoch struct {
	Number uint64
	Owner  string
}

// Log is one raw event log.
type Log struct{ chain.Log }

// Tx is the transaction behind logs.
type Tx struct{ chain.Tx }

// Param is a word of the exchange's DataStore, read by call.
type Param struct {
	// Block is the one in whose batch the record stands.
	Block chain.BlockRef
	Key   chain.Hash
	Value chain.Hash
	// Read is the block below Block at whose hash an audit read the word; zero where it was read at Block's.
	Read chain.BlockRef
	// Name is the word's name and arguments, for people; it may be empty.
	Name string
}

// Audited reports whether the word was read by an audit.
func (m Param) Audited() bool { return !m.Read.Hash.IsZero() }

// Event is the event of the record, in a block of a time (ms).
func (m Param) Event(blockTimeMs uint64) perp.Event {
	if m.Audited() {
		return perp.ParameterAudited{Name: m.Name, Parameter: perp.Parameter{
			Key: m.Key, Value: m.Value, Source: perp.FromCall,
			Stamp: perp.Stamp{Block: m.Read.Number, TimeMs: m.Read.TimeMs},
		}}
	}
	return perp.ParameterSet{Parameter: perp.Parameter{
		Key: m.Key, Value: m.Value, Source: perp.FromCall,
		Stamp: perp.Stamp{Block: m.Block.Number, TimeMs: blockTimeMs},
	}}
}

// Audit means that every word that rules read for a market has been compared with the exchange's DataStore at the hash
// of the final block Read. The PARAMs of what differed stand in every partition in earlier blocks than Block, in whose
// batch this record stands.
type Audit struct {
	Block  chain.BlockRef
	Market chain.Address
	Read   chain.BlockRef
	Words  uint32 // how many, those of the whole exchange included
}

// Event is the event of the record, in a block of a time (ms).
func (m Audit) Event(blockTimeMs uint64) perp.Event {
	return perp.Audit(m.Market, m.Read.Number, perp.Stamp{Block: m.Block.Number, TimeMs: blockTimeMs})
}

// BlockEnd closes the atomic batch of one block in one partition, or the last of several (see [Part]). Every partition
// gets one for every block.
type BlockEnd struct {
	Block chain.BlockRef
	// Records is how many records of the block stand before this one; Digest is [Digest] over them.
	Records uint32
	Digest  [32]byte
	// FinalDepth is how far below the block (blocks) its newest final ancestor is, as in a [Finalized]; 0 means that
	// none is named. A reader that does not hold the ancestor learns it from a later record.
	FinalDepth uint32
}

// Part closes a batch that holds some of a block's records, or of a range's, and not the last of them: all together
// they are larger than a batch may be. The rest follows in further batches, the last of which ends in [BlockEnd] or
// [RangeEnd]; that one counts and digests the records of all, and Parts are not among them. Until it is there nothing
// of the block counts. A scanner that ends before leaves the parts behind, and the next thing of a higher epoch is its
// EPOCH: what they hold is then void, and the block follows whole. Records of another epoch may stand between the
// batches.
type Part struct {
	Block   chain.BlockRef // of which these are records; of a range its last
	Records uint32         // of the block or range, up to here
}

// RangeEnd closes the atomic batch of a range of finalized blocks in one partition: history, where a marker per block
// would cost more than the logs. It stands in every partition. The range is Before.Number+1 to Last.Number; it cannot
// be undone.
type RangeEnd struct {
	// Before is the block under the range; only its number and hash are known.
	Before chain.BlockRef
	Last   chain.BlockRef
	// Blocks are those with records in this partition, in order: a record names its block, and here stands the block's
	// time.
	Blocks []chain.BlockRef
	// Records and Digest are as in [BlockEnd], of all blocks of the range together.
	Records uint32
	Digest  [32]byte
}

// Halt means that the chain contradicts what it had called final, and that nobody may act on the state until the
// operator has looked. What follows it, if anything, is a [Reorg] the operator has accepted.
type Halt struct {
	Block  chain.BlockRef // the block that is not where it was said to be for good
	Reason string
}

// Reorg takes back every block above Ancestor.
type Reorg struct {
	chain.Reorg
	// Accepted is true when the operator knows of it: it goes below the finalized block, lifts a [Halt], and moves the
	// finalized block back to Ancestor.
	Accepted bool
}

// Finalized moves the finalized block; it never goes back.
type Finalized struct{ Block chain.BlockRef }

func (Epoch) kind() Kind     { return KindEpoch }
func (Log) kind() Kind       { return KindLog }
func (Tx) kind() Kind        { return KindTx }
func (Param) kind() Kind     { return KindParam }
func (Audit) kind() Kind     { return KindAudit }
func (BlockEnd) kind() Kind  { return KindBlockEnd }
func (Reorg) kind() Kind     { return KindReorg }
func (Finalized) kind() Kind { return KindFinalized }
func (RangeEnd) kind() Kind  { return KindRangeEnd }
func (Halt) kind() Kind      { return KindHalt }
func (Part) kind() Kind      { return KindPart }

// brief reports whether the end is that of a block without records in its partition, which is written in the fewest
// bytes.
func (m BlockEnd) brief() bool { return m.Records == 0 && m.Digest == digestOfNone }

// digestOfNone is the [Digest] of no records.
var digestOfNone = Digest(nil)

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

// Fingerprint is a hash of one record, with its headers: of its content and of the epoch that wrote it, but not of when
// it was written.
func Fingerprint(r Record) [32]byte {
	d := sha256.New()
	part := func(b []byte) {
		d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		d.Write(b)
	}
	part(r.Key)
	part(r.Value)
	for _, h := range r.Headers {
		part([]byte(h.Key))
		part(h.Value)
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
		Hash: m.Hash[:], From: m.From[:], To: m.To[:], Nonce: m.Nonce, Block: m.Block, BlockHash: m.BlockHash[:],
		Index: m.Index,
		Ok:    m.OK, GasUsed: m.GasUsed, GasPrice: m.GasPrice,
	}
}

func (m Param) marshal() proto.Message {
	p := &wirepb.Param{Block: blockOut(m.Block), Key: m.Key[:], Value: m.Value[:], Name: m.Name}
	if m.Audited() {
		p.Read = blockOut(m.Read)
	}
	return p
}

func (m Audit) marshal() proto.Message {
	return &wirepb.Audit{Block: blockOut(m.Block), Market: m.Market[:], Read: blockOut(m.Read), Words: m.Words}
}

func (m BlockEnd) marshal() proto.Message {
	p := &wirepb.BlockEnd{Block: blockOut(m.Block), Records: m.Records, FinalDepth: m.FinalDepth}
	if !m.brief() {
		p.Digest = m.Digest[:]
	}
	return p
}

func (m Reorg) marshal() proto.Message {
	return &wirepb.Reorg{Ancestor: blockOut(m.Ancestor), OldTip: blockOut(m.OldTip), Accepted: m.Accepted}
}

func (m RangeEnd) marshal() proto.Message {
	p := &wirepb.RangeEnd{
		Before: blockOut(m.Before), Last: blockOut(m.Last), Records: m.Records, Digest: m.Digest[:],
	}
	for _, b := range m.Blocks {
		p.Blocks = append(p.Blocks, blockOut(b))
	}
	return p
}

func (m Part) marshal() proto.Message {
	return &wirepb.Part{Block: blockOut(m.Block), Records: m.Records}
}

func (m Halt) marshal() proto.Message {
	return &wirepb.Halt{Block: blockOut(m.Block), Reason: m.Reason}
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
		Hash: f.hash(p.GetHash()), From: f.address(p.GetFrom()), To: f.address(p.GetTo()), Nonce: p.GetNonce(),
		Block:     p.GetBlock(),
		BlockHash: f.hash(p.GetBlockHash()), Index: p.GetIndex(), OK: p.GetOk(), GasUsed: p.GetGasUsed(),
		GasPrice: p.GetGasPrice(),
	}}
}

func decodeParam(f *fields, p *wirepb.Param) Message {
	m := Param{Block: f.block(p.GetBlock()), Key: f.hash(p.GetKey()), Value: f.hash(p.GetValue()), Name: p.GetName()}
	if p.GetRead() != nil {
		m.Read = f.block(p.GetRead())
	}
	return m
}

func decodeAudit(f *fields, p *wirepb.Audit) Message {
	return Audit{Block: f.block(p.GetBlock()), Market: f.address(p.GetMarket()), Read: f.block(p.GetRead()),
		Words: p.GetWords()}
}

func decodeBlockEnd(f *fields, p *wirepb.BlockEnd) Message {
	m := BlockEnd{
		Block: f.block(p.GetBlock()), Records: p.GetRecords(), FinalDepth: p.GetFinalDepth(), Digest: digestOfNone,
	}
	if m.Records > 0 || len(p.GetDigest()) > 0 {
		m.Digest = f.hash(p.GetDigest())
	}
	return m
}

func decodeReorg(f *fields, p *wirepb.Reorg) Message {
	return Reorg{Reorg: chain.Reorg{Ancestor: f.block(p.GetAncestor()), OldTip: f.block(p.GetOldTip())},
		Accepted: p.GetAccepted()}
}

func decodeRangeEnd(f *fields, p *wirepb.RangeEnd) Message {
	m := RangeEnd{
		Before: f.block(p.GetBefore()), Last: f.block(p.GetLast()), Records: p.GetRecords(),
		Digest: f.hash(p.GetDigest()),
	}
	for _, b := range p.GetBlocks() {
		m.Blocks = append(m.Blocks, f.block(b))
	}
	return m
}

func decodePart(f *fields, p *wirepb.Part) Message {
	return Part{Block: f.block(p.GetBlock()), Records: p.GetRecords()}
}

func decodeHalt(f *fields, p *wirepb.Halt) Message {
	return Halt{Block: f.block(p.GetBlock()), Reason: p.GetReason()}
}

func decodeFinalized(f *fields, p *wirepb.Finalized) Message {
	return Finalized{Block: f.block(p.GetBlock())}
}
