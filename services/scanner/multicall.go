package scanner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// multicall3 is where Multicall3 stands on most chains, BSC among them: its address follows from its code.
// 0xcA11bde05977b3631167028862bE2a173976CA11.
var multicall3 = chain.Address{0xca, 0x11, 0xbd, 0xe0, 0x59, 0x77, 0xb3, 0x63, 0x11, 0x67,
	0x02, 0x88, 0x62, 0xbe, 0x2a, 0x17, 0x39, 0x76, 0xca, 0x11}

// mostTogether is how many words are read by one call: about 10 million gas, and 800 kB of hexadecimal digits. Nodes
// execute calls of 50 million gas, and take requests of 5 MB.
const mostTogether = 2000

// errNoMulticall means that there is no contract at Multicall3's address.
var errNoMulticall = errors.New("there is no Multicall3")

// all reads words after a block, of which each is needed, by as few calls as can be: those of a chain with Multicall3
// are one for every [mostTogether], and else one each.
func (d dataStore) all(ctx context.Context, words []perp.Word, block chain.BlockRef) ([]chain.Hash, error) {
	values := make([]chain.Hash, 0, len(words))
	for len(values) < len(words) {
		rest := words[len(values):]
		rest = rest[:min(len(rest), mostTogether)]
		out, err := d.caller.Call(ctx, multicall3, aggregate(d.at, rest), block.Hash)
		if err != nil {
			return nil, fmt.Errorf("reading %d words by Multicall3: %w", len(rest), err)
		}
		some, err := aggregated(out, len(rest))
		if errors.Is(err, errNoMulticall) {
			return d.each(ctx, words, block)
		}
		if err != nil {
			return nil, err
		}
		values = append(values, some...)
	}
	return values, nil
}

// each reads words by a call each, a few at a time.
func (d dataStore) each(ctx context.Context, words []perp.Word, block chain.BlockRef) ([]chain.Hash, error) {
	values := make([]chain.Hash, len(words))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, w := range words {
		group.Go(func() (err error) {
			values[i], err = d.read(ctx, w.Kind, w.Key, block, w.Name)
			return err
		})
	}
	return values, group.Wait()
}

const (
	wordBytes    = 32
	messageBytes = 4 + wordBytes // of a getter
	// A call of a getter in the list: its address, where its message begins, its length, and the message itself,
	// padded.
	entryBytes = 5 * wordBytes
)

// aggregate is the message of Multicall3.aggregate((address,bytes)[]) for the getters of words of a contract.
func aggregate(contract chain.Address, words []perp.Word) []byte {
	data := message("aggregate((address,bytes)[])", number(wordBytes), number(len(words)))
	for i := range words {
		at := number(len(words)*wordBytes + i*entryBytes)
		data = append(data, at[:]...)
	}
	for _, w := range words {
		to, at, length := contract.Hash(), number(2*wordBytes), number(messageBytes)
		data = append(append(append(data, to[:]...), at[:]...), length[:]...)
		data = append(data, message(getters[w.Kind], w.Key)...)
		data = append(data, make([]byte, 2*wordBytes-messageBytes)...)
	}
	return data
}

// aggregated reads the answer, (uint256 blockNumber, bytes[] returnData), of which each element has to be one word.
func aggregated(out []byte, count int) ([]chain.Hash, error) {
	if len(out) == 0 {
		return nil, errNoMulticall
	}
	const head = 3 * wordBytes // the block, where the list begins, and its length
	if len(out) != head+count*3*wordBytes || numberAt(out, 2) != uint64(count) {
		return nil, fmt.Errorf("%d bytes came back from Multicall3 for %d words", len(out), count)
	}
	values := make([]chain.Hash, count)
	for i := range values {
		from := head/wordBytes + count + 2*i
		if numberAt(out, from) != wordBytes {
			return nil, errors.New("Multicall3 returned something else than a word")
		}
		values[i] = chain.Hash(out[(from+1)*wordBytes:][:wordBytes])
	}
	return values, nil
}

func number(n int) (word chain.Hash) {
	binary.BigEndian.PutUint64(word[wordBytes-8:], uint64(n))
	return word
}

// numberAt is the number in a word of an answer.
func numberAt(out []byte, word int) uint64 {
	return binary.BigEndian.Uint64(out[(word+1)*wordBytes-8:])
}
