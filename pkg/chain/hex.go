package chain

import (
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/sha3"
)

// Hash is a 32-byte word: a block, transaction or topic hash, or a storage key. Its text form is 0x and 64 lower-case
// digits.
type Hash [32]byte

// Address is an EVM account. Its text form is the checksummed one of EIP-55; any case is read.
type Address [20]byte

// ParseHash reads 0x and 64 hexadecimal digits.
func ParseHash(s string) (h Hash, err error) { return h, decodeFixed(h[:], s, "hash") }

// ParseAddress reads 0x and 40 hexadecimal digits of any case; the checksum is not enforced.
func ParseAddress(s string) (a Address, err error) { return a, decodeFixed(a[:], s, "address") }

// Keccak256 hashes the concatenation of its arguments.
func Keccak256(parts ...[]byte) (h Hash) {
	d := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		d.Write(p)
	}
	d.Sum(h[:0])
	return h
}

// IsZero reports whether every byte is zero.
func (h Hash) IsZero() bool { return h == Hash{} }

// Hex returns the text form.
func (h Hash) Hex() string { return "0x" + hex.EncodeToString(h[:]) }

// String returns the text form.
func (h Hash) String() string { return h.Hex() }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.Hex()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(b []byte) error { return decodeFixed(h[:], string(b), "hash") }

// Address returns the last 20 bytes: how an address is padded into a topic.
func (h Hash) Address() (a Address) {
	copy(a[:], h[12:])
	return a
}

// IsZero reports whether every byte is zero.
func (a Address) IsZero() bool { return a == Address{} }

// Hash returns the address left-padded to a topic.
func (a Address) Hash() (h Hash) {
	copy(h[12:], a[:])
	return h
}

// Hex returns the checksummed text form (EIP-55).
func (a Address) Hex() string {
	out := []byte(hex.EncodeToString(a[:]))
	sum := Keccak256(out)
	for i, c := range out {
		nibble := sum[i/2] >> 4
		if i%2 == 1 {
			nibble = sum[i/2] & 15
		}
		if c >= 'a' && nibble >= 8 {
			out[i] = c - 'a' + 'A'
		}
	}
	return "0x" + string(out)
}

// String returns the text form.
func (a Address) String() string { return a.Hex() }

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.Hex()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(b []byte) error { return decodeFixed(a[:], string(b), "address") }

func decodeFixed(dst []byte, s, what string) error {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || len(digits) != 2*len(dst) {
		return fmt.Errorf("%q is no %s: want 0x and %d hexadecimal digits", s, what, 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(digits)); err != nil {
		return fmt.Errorf("%q is no %s: %w", s, what, err)
	}
	return nil
}
