package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// binaries returns the directory of the programs postgres and initdb: the machine's own, or a download.
func binaries() (string, error) {
	if dir := installed(); dir != "" {
		return dir, nil
	}
	return fetched()
}

// installed looks where PATH points and where Debian puts servers, newest version first.
func installed() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		// A link's target knows where its shared files are; the link does not.
		if path, err = filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(path)) {
			return filepath.Dir(path)
		}
	}
	newest, dir := 0, ""
	matches, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // The pattern is a constant and well formed.
	for _, m := range matches {
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(m))); err == nil && v > newest && complete(m) {
			newest, dir = v, m
		}
	}
	return dir
}

func complete(dir string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}
