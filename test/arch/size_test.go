package arch

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// The sender's rooms are not joined by structures that know everything.
func TestTypesOfTheSenderAreSmall(t *testing.T) {
	problems, err := checkTypes(os.DirFS("../.."), "services/sender", "services/sender/preflight",
		"services/sender/turns", "services/sender/shadow", "pkg/txmgr/txmanager", "pkg/txmgr/headtrack", "pkg/txmgr/txm",
		"pkg/txmgr/lease", "pkg/txmgr/nonce", "pkg/txmgr/signer", "pkg/tier/evidence")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestLargeTypesAreFound(t *testing.T) {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	for text, want := range map[string]string{
		"type T struct {\n" + lines(15, "a%d int") + "}":             "",
		"type T struct {\n" + lines(14, "a%d int") + "b, c string }": "r/T has 16 fields, more than 15",
		"type T struct {\n" + lines(4, "f%d func()") +
			"}": "r/T has 4 fields of function type, more than 3",
		"type F func(int)\ntype T struct {\n" + lines(4, "f%d F") +
			"}": "r/T has 4 fields of function type, more than 3",
		"type Sender struct{}\ntype T struct { *Sender; n int }":                   "r/T embeds the Sender",
		"type Sender struct{}\ntype T struct { Sender }":                           "r/T embeds the Sender",
		"type Sender struct{}\ntype T struct { s *Sender }":                        "",
		"type T struct {\n" + lines(16, "K%d int `toml:\"k\"`") + "}":              "",
		"type T struct {\n" + lines(16, "K%d int `toml:\"k\"`") + "extra string }": "r/T has 17 fields, more than 15",
	} {
		got, err := checkTypes(fstest.MapFS{"r/t.go": {Data: []byte("package r\n" + text)}}, "r")
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}
