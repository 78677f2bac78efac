package signer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key that does not fit into the memory of the container is an error, not a process that the kernel ends.
func TestKeyNeedsRoom(t *testing.T) {
	const mb = 1 << 20
	light := strings.Replace(standardVector, `"n":262144`, `"n":4096`, 1)
	for _, tt := range []struct {
		name, sealed string
		limit        uint64
		refused      bool
	}{
		{"geth's cost in 128 MB", standardVector, 128 * mb, false}, // its r is 1
		{"geth's own r in 128 MB", strings.Replace(standardVector, `"r":1`, `"r":8`, 1), 128 * mb, true},
		{"geth's own r in 512 MB", strings.Replace(standardVector, `"r":1`, `"r":8`, 1), 512 * mb, false},
		{"geth's own r without a limit", strings.Replace(standardVector, `"r":1`, `"r":8`, 1), 0, false},
		{"a light one in 64 MB", light, 64 * mb, false},
		{"what is no keystore", "{", 1, false},
	} {
		if err := checkRoom([]byte(tt.sealed), tt.limit); (err != nil) != tt.refused {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	for want, files := range map[uint64]map[string]string{
		134217728: {"memory.max": "134217728\n"},
		67108864:  {"memory/memory.limit_in_bytes": "67108864\n"},
		0:         {"memory.max": "max\n"},
	} {
		folder := t.TempDir()
		for name, text := range files {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimit(folder); got != want {
			t.Errorf("%v: %d, want %d", files, got, want)
		}
	}
	if got := memoryLimit(t.TempDir()); got != 0 {
		t.Errorf("no files: %d", got)
	}
}
