package chain

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAddressChecksum(t *testing.T) {
	// The examples of EIP-55.
	for _, want := range []string{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
		"0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		a, err := ParseAddress(strings.ToLower(want))
		if err != nil {
			t.Fatal(err)
		}
		if a.Hex() != want {
			t.Errorf("got %s, want %s", a.Hex(), want)
		}
	}
}

func TestKeccak256(t *testing.T) {
	const empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
	if got := Keccak256().Hex(); got != empty {
		t.Errorf("keccak of nothing: got %s, want %s", got, empty)
	}
	if Keccak256([]byte("ab"), []byte("c")) != Keccak256([]byte("abc")) {
		t.Error("parts must hash as their concatenation")
	}
}

func TestParseRefusesBadText(t *testing.T) {
	for _, s := range []string{"", "0x", "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg", "0x00"} {
		if _, err := ParseAddress(s); err == nil {
			t.Errorf("ParseAddress(%q) succeeded", s)
		}
		if _, err := ParseHash(s); err == nil {
			t.Errorf("ParseHash(%q) succeeded", s)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Address
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		text, _ := a.MarshalText()
		var back Address
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Fatalf("round trip of %s: %v, %v", text, back, err)
		}
		if a.Hash().Address() != a {
			t.Fatal("padding to a topic and back changed the address")
		}
	})
}

func TestOrder(t *testing.T) {
	a, b, c := LogPos{1, 9}, LogPos{2, 0}, LogPos{2, 1}
	if !a.Before(b) || !b.Before(c) || c.Before(b) || b.Before(b) {
		t.Error("logs are ordered by block, then by index")
	}
	parent := BlockRef{Number: 4, Hash: Hash{1}}
	if !(BlockRef{Number: 5, Parent: Hash{1}}).Follows(parent) || (BlockRef{Number: 5, Parent: Hash{2}}).
		Follows(parent) {
		t.Error("a child names its parent by hash")
	}
}
