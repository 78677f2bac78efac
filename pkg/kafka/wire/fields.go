package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire/wirepb"
)

var decoders = map[Kind]func([]byte) (Message, error){
	KindEpoch:     decoder(new(wirepb.Epoch), decodeEpoch),
	KindLog:       decoder(new(wirepb.Log), decodeLog),
	KindTx:        decoder(new(wirepb.Tx), decodeTx),
	KindParam:     decoder(new(wirepb.Param), decodeParam),
	KindAudit:     decoder(new(wirepb.Audit), decodeAudit),
	KindBlockEnd:  decoder(new(wirepb.BlockEnd), decodeBlockEnd),
	KindReorg:     decoder(new(wirepb.Reorg), decodeReorg),
	KindRangeEnd:  decoder(new(wirepb.RangeEnd), decodeRangeEnd),
	KindHalt:      decoder(new(wirepb.Halt), decodeHalt),
	KindFinalized: decoder(new(wirepb.Finalized), decodeFinalized),
	KindPart:      decoder(new(wirepb.Part), decodePart),
	KindPrice:     decoder(new(wirepb.Price), decodePrice),
	KindJob:       decoder(new(wirepb.Job), decodeJob),
	KindResult:    decoder(new(wirepb.Result), decodeResult),
}

// decoder builds the reader of one message. The prototype gives the type only.
func decoder[P proto.Message](prototype P, decode func(*fields, P) Message) func([]byte) (Message, error) {
	return func(value []byte) (Message, error) {
		p, _ := prototype.ProtoReflect().New().Interface().(P) // a message makes messages of its own type
		if err := proto.Unmarshal(value, p); err != nil {
			return nil, err
		}
		var f fields
		m := decode(&f, p)
		return m, f.err
	}
}

// fields reads fixed-size values and remembers the first one of a wrong size.
type fields struct{ err error }

func (f *fields) hash(b []byte) (h chain.Hash) {
	f.fixed(h[:], b, "hash")
	return h
}

func (f *fields) address(b []byte) (a chain.Address) {
	f.fixed(a[:], b, "address")
	return a
}

func (f *fields) fixed(dst, b []byte, what string) {
	if len(b) != len(dst) && f.err == nil {
		f.err = fmt.Errorf("%s of %d bytes, want %d", what, len(b), len(dst))
	}
	copy(dst, b)
}

func (f *fields) uint(b []byte) chain.Uint {
	if len(b) > 32 && f.err == nil {
		f.err = fmt.Errorf("number of %d bytes, want at most 32", len(b))
		return chain.Uint{}
	}
	return chain.UintFromBytes(b)
}

// int reads a word in two's complement.
func (f *fields) int(b []byte) chain.Int {
	var word [32]byte
	f.fixed(word[:], b, "signed number")
	if f.err != nil {
		return chain.Int{}
	}
	return chain.IntFromWord(word)
}

func (f *fields) block(p *wirepb.Block) chain.BlockRef {
	return chain.BlockRef{Number: p.GetNumber(), Hash: f.hash(p.GetHash()), Parent: f.hash(p.GetParent()),
		TimeMs: p.GetTimeMs()}
}

func blockOut(b chain.BlockRef) *wirepb.Block {
	return &wirepb.Block{Number: b.Number, Hash: b.Hash[:], Parent: b.Parent[:], TimeMs: b.TimeMs}
}

// uintOut is the shortest big-endian form.
func uintOut(u chain.Uint) []byte {
	word := u.Bytes32()
	for i, b := range word {
		if b != 0 {
			return word[i:]
		}
	}
	return nil
}
