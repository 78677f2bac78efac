package streams

import (
	"encoding/binary"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price/source"
)

// word is the size of an ABI word.
const word = source.Word

// feedVersion is the report schema of a Data Streams feed: the first two bytes of its id.
func feedVersion(id chain.Hash) uint16 { return binary.BigEndian.Uint16(id[:2]) }

// reportV3 is a Data Streams report of schema 3 ("Crypto Advanced"): feedId, validFromTimestamp, observationsTimestamp,
// nativeFee, linkFee, expiresAt, price, bid, ask. Times are Unix seconds; fees are in the smallest unit of the native
// token and of LINK.
type reportV3 struct {
	feed                         chain.Hash
	validFrom, observed, expires uint32
	nativeFee, linkFee           chain.Uint
	price, bid, ask              chain.Uint // USD per whole token, with the feed's decimals
}

// decodeFullReport decodes a signed report: the ABI encoding of (bytes32[3] context, bytes report, bytes32[]
// rs, bytes32[] ss, bytes32 vs). The signatures are not looked at.
func decodeFullReport(full []byte) (r reportV3, err error) {
	const head, place = 7 * word, 3 * word // words of the tuple; where the offset of the report stands
	if len(full) < head {
		return r, fmt.Errorf("a signed report of %d bytes is too short", len(full))
	}
	offset, err := size(full[place:place+word], len(full)-word)
	if err != nil {
		return r, fmt.Errorf("offset of the report: %w", err)
	}
	length, err := size(full[offset:offset+word], len(full)-offset-word)
	if err != nil {
		return r, fmt.Errorf("length of the report: %w", err)
	}
	return decodeReportV3(full[offset+word : offset+word+length])
}

// size reads a word that must not be more than a bound.
func size(w []byte, most int) (int, error) {
	v, fits := chain.UintFromBytes(w).Uint64()
	if !fits || most < 0 || v > uint64(most) {
		return 0, fmt.Errorf("%s is more than the %d bytes there are", chain.UintFromBytes(w), most)
	}
	return int(v), nil
}

func decodeReportV3(blob []byte) (r reportV3, err error) {
	const words = 9
	if len(blob) < word {
		return r, errors.New("a report without a feed id")
	}
	copy(r.feed[:], blob)
	if v := feedVersion(r.feed); v != 3 {
		return reportV3{}, fmt.Errorf("a report of schema %d (only schema 3 is read)", v)
	}
	if len(blob) != words*word {
		return reportV3{}, fmt.Errorf("a report of schema 3 has %d bytes, not %d", words*word, len(blob))
	}
	at := func(i int) []byte { return blob[i*word : (i+1)*word] }
	for i, to := range map[int]*uint32{1: &r.validFrom, 2: &r.observed, 5: &r.expires} {
		v, fits := chain.UintFromBytes(at(i)).Uint64()
		if *to = uint32(v); !fits || uint64(*to) != v {
			return reportV3{}, fmt.Errorf("word %d of the report is no uint32", i)
		}
	}
	for i, to := range map[int]*chain.Uint{3: &r.nativeFee, 4: &r.linkFee, 6: &r.price, 7: &r.bid, 8: &r.ask} {
		if *to = chain.UintFromBytes(at(i)); at(i)[0] >= 0x80 {
			return reportV3{}, fmt.Errorf("word %d of the report is negative", i)
		}
	}
	return r, nil
}
