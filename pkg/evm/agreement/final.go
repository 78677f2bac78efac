package agreement

import (
	"cmp"
	"slices"

	"perpkeeper/pkg/chain"
)

// Finality is the result of comparing the final blocks that endpoints name.
type Finality struct {
	Block chain.BlockRef // the highest that enough hosts call final; zero while there is none
	By    []string       // who does
	// Contradict lists who calls a branch final that does not hold the block.
	Contradict []string
}

// HashAt returns the hash of the block that an endpoint has at a number, at or below its final block. An error is no
// answer.
type HashAt func(from string, number uint64) (chain.Hash, error)

// Final returns the highest block that at least so many hosts call final, all of which know it by its hash: whoever
// calls a block final calls everything below it on its branch final too.
func Final(claims []Answer[chain.BlockRef], need int, at HashAt) Finality {
	sorted := slices.SortedFunc(slices.Values(claims),
		func(a, b Answer[chain.BlockRef]) int { return cmp.Compare(b.Value.Number, a.Value.Number) })
	for i, c := range sorted {
		if i > 0 && c.Value.Hash == sorted[i-1].Value.Hash {
			continue
		}
		f, backers := support(c.Value, sorted, at)
		if backers >= max(need, 1) {
			return f
		}
	}
	return Finality{}
}

// support gathers who calls a block final, and from how many hosts they are.
func support(block chain.BlockRef, claims []Answer[chain.BlockRef], at HashAt) (f Finality, backers int) {
	f.Block = block
	different := map[string]bool{}
	for _, c := range claims {
		hash, err := c.Value.Hash, error(nil)
		switch {
		case c.Value.Number < block.Number:
			continue
		case c.Value.Number > block.Number:
			hash, err = at(c.From, block.Number)
		}
		switch {
		case err != nil:
		case hash == block.Hash:
			f.By, different[c.Host] = append(f.By, c.From), true
		default:
			f.Contradict = append(f.Contradict, c.From)
		}
	}
	return f, len(different)
}
