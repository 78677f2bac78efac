package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownCPU is the processor time this process has used: statevm, the broker, and whoever looks on.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// databaseCPU is the processor time of the embedded server that this process started: of the postmaster, which counts
// what its ended children used, and of its children. Where the kernel does not tell, it is 0.
func databaseCPU() (total time.Duration) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	processes := map[int][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		at := bytes.LastIndexByte(text, ')')
		if err != nil || at < 0 || !strings.Contains(string(text[:at]), "(postgres") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		processes[pid] = strings.Fields(string(text[at+1:])) // from the state on
	}
	ours := func(pid int) bool { p := processes[pid]; return p != nil && p[1] == strconv.Itoa(os.Getpid()) }
	for pid, fields := range processes {
		parent, _ := strconv.Atoi(fields[1])
		if !ours(pid) && !ours(parent) {
			continue
		}
		used := fields[11:13]
		if ours(pid) {
			used = fields[11:15]
		}
		for _, u := range used {
			n, _ := strconv.ParseInt(u, 10, 64)
			total += time.Duration(n) * tick
		}
	}
	return total
}
