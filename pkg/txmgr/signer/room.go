package signer

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files in which the kernel says how much memory a process and its like may use, in bytes, by the two versions of
// control groups; seen from inside of a container they are its own.
var limitFiles = []string{"memory.max", "memory/memory.limit_in_bytes"}

const groups = "/sys/fs/cgroup"

// memoryLimit is how many bytes of memory the control group below a folder may use; 0 if it has no limit, or none that
// can be read.
func memoryLimit(folder string) uint64 {
	for _, name := range limitFiles {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			continue
		}
		limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err == nil { // "max" is none
			return limit
		}
	}
	return 0
}

// checkRoom reports why a key cannot be opened within a limit of bytes, 0 for none: the kernel would end the process
// without a word. What scrypt takes is 128·n·r bytes of the file's parameters.
func checkRoom(sealed []byte, limit uint64) error {
	const besides = 32 << 20 // what a process takes that has just begun
	var file struct {
		Crypto struct {
			Params struct {
				N uint64 `json:"n"`
				R uint64 `json:"r"`
			} `json:"kdfparams"`
		} `json:"crypto"`
	}
	if readable := json.Unmarshal(sealed, &file) == nil; !readable || limit == 0 {
		return nil // who decrypts it says what is wrong with it
	}
	over, takes := bits.Mul64(file.Crypto.Params.N*128, file.Crypto.Params.R)
	if over == 0 && takes+besides <= limit {
		return nil
	}
	return fmt.Errorf("opening it takes %d MB of memory beside what the process has, and its limit is %d MB in all "+
		"(raise the container's limit: SENDER_MEMORY)", takes>>20, limit>>20)
}
