package liquidation

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// A packed position is its key, its account and the number of its group, and then its numbers, each as its length in
// one byte and its bytes without leading zeros: size in USD and in tokens, collateral, borrowing factor and funding per
// size, of which judging prices are computed; the magnitude of the pending impact and 1 if it is negative; when it was
// increased and decreased; changes; and of the stamp block, log and time. A new number goes behind the first five.

// pack appends a position of a group. What no rule reads is left out: the funding that can be claimed, and the
// transaction of the last change. Market, collateral, side and status are the group's.
func pack(dst record, p *perp.Position, group uint32) record {
	dst = append(dst, p.PositionKey[:]...)
	dst = append(dst, p.Account[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, group)
	for _, n := range [...]chain.Uint{p.SizeInUsd, p.SizeInTokens, p.CollateralAmount, p.BorrowingFactor,
		p.FundingFeeAmountPerSize, p.PendingImpactAmount.Abs()} {
		dst = appendWide(dst, n)
	}
	var negative uint64
	if p.PendingImpactAmount.Sign() < 0 {
		negative = 1
	}
	dst = appendWord(dst, negative)
	dst = appendWide(appendWide(dst, p.IncreasedAtTime), p.DecreasedAtTime)
	for _, n := range [...]uint64{p.Changes, p.Stamp.Block, uint64(p.Stamp.Log), p.Stamp.TimeMs} {
		dst = appendWord(dst, n)
	}
	return dst
}

func appendWide(dst record, n chain.Uint) record {
	word := n.Bytes32()
	first := 0
	for first < len(word) && word[first] == 0 {
		first++
	}
	return append(append(dst, byte(len(word)-first)), word[first:]...)
}

func appendWord(dst record, n uint64) record {
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], n)
	first := 0
	for first < len(word) && word[first] == 0 {
		first++
	}
	return append(append(dst, byte(len(word)-first)), word[first:]...)
}

// reader reads the numbers of a record one after the other.
type reader []byte

func (r *reader) next() []byte {
	end := 1 + int((*r)[0])
	number := (*r)[1:end]
	*r = (*r)[end:]
	return number
}

func (r *reader) wide() chain.Uint { return chain.UintFromBytes(r.next()) }

func (r *reader) word() (n uint64) {
	for _, b := range r.next() {
		n = n<<8 | uint64(b)
	}
	return n
}

// unpack builds the position of a record.
func unpack(r record, key groupKey) (p perp.Position) {
	p.PositionKey, p.Account = chain.Hash(r[keyAt:accountAt]), chain.Address(r[accountAt:groupAt])
	p.Market, p.CollateralToken, p.IsLong, p.Status = key.market, key.collateral, key.isLong, perp.Active
	n := reader(r[numbersAt:])
	p.SizeInUsd, p.SizeInTokens, p.CollateralAmount = n.wide(), n.wide(), n.wide()
	p.BorrowingFactor, p.FundingFeeAmountPerSize = n.wide(), n.wide()
	p.PendingImpactAmount = n.wide().Int()
	if n.word() == 1 {
		p.PendingImpactAmount = p.PendingImpactAmount.Neg()
	}
	p.IncreasedAtTime, p.DecreasedAtTime = n.wide(), n.wide()
	p.Changes, p.Stamp.Block, p.Stamp.Log, p.Stamp.TimeMs = n.word(), n.word(), uint32(n.word()), n.word()
	return p
}

// entry is the numbers of a position that its judging price is computed from: floats, because they only filter.
type entry struct{ size, tokens, collateral, borrowing, funding float64 }

func entryOf(r record) entry {
	n := reader(r[numbersAt:])
	return entry{n.wide().Float(), n.wide().Float(), n.wide().Float(), n.wide().Float(), n.wide().Float()}
}
