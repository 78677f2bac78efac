package pg

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/perp"
)

// The bytes of the templates belong to the number of the layout, which is their first line: whoever changes a template
// raises it and writes the new sum here.
func TestLayoutNumberStandsForTheTemplates(t *testing.T) {
	sums := map[int]string{9: "9fe826a176010c5a"}
	sum := sha256.New()
	files, err := fs.Glob(schemaFiles, "state/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(schemaFiles, f)
		if err != nil {
			t.Fatal(err)
		}
		if f == tablesFile {
			text = text[bytes.IndexByte(text, '\n')+1:] // without the number
		}
		sum.Write(text)
	}
	if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != sums[stateLayout] {
		t.Errorf("pkg/pg/state/*.sql have the sum %s, and layout %d has %q: where the templates have changed, make "+
			"the number in the first line of tables.sql one higher, and give the new number its sum here", got,
			stateLayout, sums[stateLayout])
	}
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{
		"UIFeeReceiver": "ui_fee_receiver", "SrcChainID": "src_chain_id", "OK": "ok", "SizeInUsd": "size_in_usd",
		"Key": "key",
	} {
		if got := snake(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func TestEscapeIsReversibleAndStorable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := string(rapid.SliceOf(rapid.SampledFrom([]byte("\\x0a\x00\xff\xc3\xa9z"))).Draw(t, "bytes"))
		stored := Escape(raw)
		if strings.ContainsRune(stored, 0) || !strings.Contains(strings.ToValidUTF8(stored, "")+"|", stored+"|") {
			t.Fatalf("%q is stored as %q", raw, stored)
		}
		if back, err := Unescape(stored); err != nil || back != raw {
			t.Fatalf("%q came back as %q, %v", raw, back, err)
		}
	})
	for _, broken := range []string{`\`, `\x`, `\x0`, `\xzz`, `\q`} {
		if _, err := Unescape(broken); err == nil {
			t.Errorf("%q was accepted", broken)
		}
	}
}

// A type nobody thought of is refused, not stored as something else.
func TestUnknownFieldTypeIsRefused(t *testing.T) {
	for _, value := range []any{nil, 1.5, struct{}{}, uint8(1)} {
		r := perp.Request{Fields: perp.Fields{"x": value}}
		if _, err := layouts[perp.Requests].encode(nil, r); err == nil || !strings.Contains(err.Error(), `item "x"`) {
			t.Errorf("%T: got %v", value, err)
		}
	}
	if _, err := layouts[perp.Orders].encode(nil, perp.Request{}); err == nil {
		t.Error("a request was stored as an order")
	}
}
