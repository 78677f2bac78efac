package evm

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
)

// body is a block's transactions as they were signed.
type body struct {
	signed  []byte // one behind the other
	ends    []int  // where each ends
	hashes  int    // of transactions of which there was nothing else
	gaps    []gap  // of which something is not shown, in order; it was taken for empty
	unknown gap    // the one for which nobody can say what they hash to; no reason where that can be computed
	unfit   string // how they contradict the header, or themselves; empty where they do not
	proven  bool   // they hash to the header's root
}

// gap is a transaction that is not shown in full, or not so that this build can read it.
type gap struct {
	at    int
	why   string
	kind  uint64
	typed bool // its type is shown
}

func (s *signedTx) gap(at int, why string) gap { return gap{at, why, s.kind, s.typed} }

// add appends a transaction.
func (b *body) add(encoder *txEncoder, tx *signedTx) {
	if b.unreadable() {
		return
	}
	signed, err := encoder.encode(b.signed, tx)
	if err != nil {
		*b = body{hashes: b.hashes, unknown: tx.gap(len(b.ends), err.Error())}
		return
	}
	if encoder.lacks != "" {
		b.gaps = append(b.gaps, tx.gap(len(b.ends), encoder.lacks))
	}
	b.signed = signed
	b.ends = append(b.ends, len(b.signed))
}

// unreadable reports whether this build cannot compute what the transactions hash to.
func (b *body) unreadable() bool { return b.unknown.why != "" }

// doubt is why they are not proven.
func (b *body) doubt() string { return cmp.Or(b.unknown.why, b.unfit) }

// at is the i-th transaction.
func (b *body) at(i int) []byte {
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.signed[from:b.ends[i]]
}

// Len is for the root of the transactions.
func (b *body) Len() int { return len(b.ends) }

// EncodeIndex writes the i-th transaction.
func (b *body) EncodeIndex(i int, to *bytes.Buffer) { to.Write(b.at(i)) }

// BodyProven reports whether the block's transactions hash to the root that the header commits to. Then none is left
// out and each has its hash, nonce and receiver; the sender is the endpoint's word, see Reader.Sender.
func (b *Block) BodyProven() bool { return b.body != nil && b.body.proven }

// checkBody holds the transactions against the header. It fails where they are not the block's whoever else shows the
// same. A block with one that does not come to its own hash, or that this build cannot encode, stays unproven: see
// Reader.settleBody.
func (b *Block) checkBody() error {
	if b.body == nil {
		b.body = &body{}
	}
	switch {
	case b.body.hashes > 0:
		return bodyLie("%d transactions of block %d are mere hashes", b.body.hashes, b.Number)
	case b.body.unreadable():
		return nil
	}
	others := b.otherHashes()
	switch root := chain.Hash(types.DeriveSha(b.body, trie.NewStackTrie(nil))); {
	case root != b.TransactionsRoot && len(others) > 0:
		b.body.unknown, b.body.unfit = b.fault(others, root)
		return nil
	case root != b.TransactionsRoot:
		return bodyLie("the transactions of block %d hash to %s, its header says %s", b.Number, root,
			b.TransactionsRoot)
	case len(others) > 0:
		return bodyLie("transaction %d of block %d does not hash to %s", others[0], b.Number, b.Txs[others[0]].Hash)
	}
	b.body.proven = true
	return nil
}

// otherHashes are the places of transactions that do not come to the hash that is said of them.
func (b *Block) otherHashes() (places []int) {
	for i, tx := range b.Txs {
		if chain.Hash(crypto.Keccak256Hash(b.body.at(i))) != tx.Hash {
			places = append(places, i)
		}
	}
	return places
}

// fault sorts transactions that do not come to their hashes: either something of each is not shown, so that nobody can
// say what it comes to, or one that is shown in full contradicts itself.
func (b *Block) fault(places []int, root chain.Hash) (unknown gap, unfit string) {
	for _, at := range places {
		i, lacking := slices.BinarySearchFunc(b.body.gaps, at, func(g gap, at int) int { return cmp.Compare(g.at, at) })
		if !lacking {
			return gap{}, fmt.Sprintf("transaction %d of block %d does not hash to %s, nor all of them to %s: it is %s",
				at, b.Number, b.Txs[at].Hash, b.TransactionsRoot, root)
		}
		if unknown.why == "" {
			unknown = b.body.gaps[i]
		}
	}
	return unknown, ""
}

// misfit is that receipts are not those of the block's transactions: a lie where these are proven. Else nobody can tell
// which of the two is wrong, and the receipts are as good as not there.
func (b *Block) misfit(format string, args ...any) error {
	if b.BodyProven() {
		return lie(format, args...)
	}
	return &notFoundError{"what fits a body that cannot be held against its header (" + fmt.Sprintf(format, args...) +
		")"}
}

// kind is the type of the transaction at a place; known only of a proven body.
func (b *Block) kind(at int) (kind uint64, known bool) {
	if !b.BodyProven() {
		return 0, false
	}
	const leastList = 0xc0 // how a legacy transaction begins, which is a list alone
	if first := b.body.at(at)[0]; first < leastList {
		return uint64(first), true
	}
	return types.LegacyTxType, true
}

// signer recovers who signed the transaction at a place.
func (b *Block) signer(at int, chainID uint64) (chain.Address, error) {
	var tx types.Transaction
	if err := tx.UnmarshalBinary(b.body.at(at)); err != nil {
		return chain.Address{}, fmt.Errorf("reading a transaction again: %w", err)
	}
	from, err := types.Sender(types.LatestSignerForChainID(new(big.Int).SetUint64(chainID)), &tx)
	if err != nil {
		return chain.Address{}, fmt.Errorf("recovering the sender of %s: %w", tx.Hash(), err)
	}
	return chain.Address(from), nil
}

// Sender returns who has signed the transaction at a place of a block, recovered from the signature, which takes some
// 0.1 ms. An endpoint that named somebody else has lied: it is excluded. Of a block whose body is not proven, or whose
// signature nobody can read, it is who the endpoint says.
func (r Reader) Sender(block Block, at int) chain.Address {
	said := block.Txs[at].From
	if !block.BodyProven() {
		return said
	}
	from, err := block.signer(at, r.pool.chainID)
	if err != nil {
		return said
	}
	if from != said {
		r.pool.namedWrongSender(block, at, from)
	}
	return from
}

// namedWrongSender excludes the endpoint that gave the block.
func (p *pool) namedWrongSender(block Block, at int, truth chain.Address) {
	for _, e := range p.public {
		if e.name == block.Source {
			e.bar(ForBodies, ReasonLied, fmt.Sprintf("it says that transaction %s is from %s, which %s has signed",
				block.Txs[at].Hash, block.Txs[at].From, truth))
		}
	}
}
