package txm

import (
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/job"
)

// Claim is a signed transaction looking for a slot.
type Claim struct {
	Intent int64
	// Kind is that of the intent's job. A liquidation that is called something else is refused as [Moved] where no
	// claim of the batch is called one.
	Kind job.Kind
	Tx   SignedTx
}

// Batch are claims that are made at once.
type Batch struct {
	Claims []Claim
	// Cursor is the signer's next nonce as the caller knows it. The nonces of the claims are gaps below it, and the
	// numbers from it on.
	Cursor uint64
	Limits Limits
}

var errNoClaims = errors.New("a batch without claims")

// Fresh counts the numbers from the cursor on. It fails unless these follow each other without a hole, in any order,
// and no number comes twice: the cursor could not be advanced past them.
func (b Batch) Fresh() (count int, err error) {
	if len(b.Claims) == 0 {
		return 0, errNoClaims
	}
	numbers := make([]uint64, len(b.Claims))
	for i, c := range b.Claims {
		numbers[i] = c.Tx.Nonce
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if i > 0 && n == numbers[i-1] {
			return 0, fmt.Errorf("a batch with number %d twice", n)
		}
		if n < b.Cursor {
			continue
		}
		if n != b.Cursor+uint64(count) {
			return 0, fmt.Errorf("a batch at cursor %d with number %d and without %d", b.Cursor, n,
				b.Cursor+uint64(count))
		}
		count++
	}
	return count, nil
}

// Has reports whether a claim of the batch is for a kind of job.
func (b Batch) Has(kind job.Kind) bool {
	return slices.ContainsFunc(b.Claims, func(c Claim) bool { return c.Kind == kind })
}

// Most is how many of the signer's transactions may be pending before the batch, so that every claim of it finds a
// slot: as many as its least urgent lane may have, less the batch itself. It is negative where the batch is larger
// than that.
func (b Batch) Most() int {
	slots := b.Limits.Signer
	for _, c := range b.Claims {
		slots = min(slots, b.Limits.Slots(c.Kind.Lane()))
	}
	return slots - len(b.Claims)
}
