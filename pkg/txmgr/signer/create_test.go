package signer

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What Create writes, Open opens, as it lies there, and what that took is given back: a sender's memory limit is sized
// by what it needs afterwards.
func TestCreatedKeystoreOpens(t *testing.T) {
	dir := t.TempDir()
	address, err := Create(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.KeystoreDir = dir
	all, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Address() != address {
		t.Errorf("%v opened, not %s", all, address)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if held := m.HeapSys - m.HeapReleased; held > 128<<20 {
		t.Errorf("%d MB are held after a keystore was opened", held>>20)
	}
}

func TestImportedKeystoreIsThatOfTheKey(t *testing.T) {
	dir := t.TempDir()
	const raw = "0xf214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897" // of the well-known test mnemonic
	address, err := Create(dir, raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := address.Hex(); got != "0xBcd4042DE499D14e55001CcbB24a551F3b954096" {
		t.Errorf("the keystore is of %s", got)
	}
	if _, err := Create(dir, raw); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second import of the key: %v", err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), raw[2:]) {
			t.Errorf("%s holds the key as it is", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCreateQuotesNoKey(t *testing.T) {
	for _, raw := range []string{"0x1234secret", strings.Repeat("f", 64),
		"f214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e016288"} {
		if _, err := Create(t.TempDir(), raw); err == nil || strings.Contains(err.Error(), raw) {
			t.Errorf("error: %v", err)
		}
	}
}
