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

// databaseCPU is the processor time of the embedded servers that this process started: of the postmasters, which count
// what their ended children used, and of their children. Where the kernel does not tell, it is 0.
func databaseCPU() (total time.Duration) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	for _, fields := range databaseProcesses() {
		used := fields[11:13]
		if fields[1] == strconv.Itoa(os.Getpid()) {
			used = fields[11:15]
		}
		for _, u := range used {
			n, _ := strconv.ParseInt(u, 10, 64)
			total += time.Duration(n) * tick
		}
	}
	return total
}

// databaseProcesses are the postmasters that this process started and their children: of each what /proc/PID/stat says,
// from its state on.
func databaseProcesses() map[int][]string {
	processes := map[int][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		at := bytes.LastIndexByte(text, ')')
		if err != nil || at < 0 || !strings.Contains(string(text[:at]), "(postgres") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		processes[pid] = strings.Fields(string(text[at+1:]))
	}
	child := func(pid int) bool { p := processes[pid]; return p != nil && p[1] == strconv.Itoa(os.Getpid()) }
	ours := map[int][]string{}
	for pid, fields := range processes {
		if parent, _ := strconv.Atoi(fields[1]); child(pid) || child(parent) {
			ours[pid] = fields
		}
	}
	return ours
}

// databaseMemory is what the servers that this process started have for themselves alone, bytes, and how many
// processes they are: what they share is a setting.
func databaseMemory() (private uint64, processes int) {
	pids := databaseProcesses()
	for pid := range pids {
		private += memoryOf(pid, "RssAnon") // one that has ended meanwhile has none
	}
	return private, len(pids)
}

// memoryOf is how many bytes a process has of a kind of memory: VmRSS is resident now, VmHWM the most that ever was. A
// process that has ended has none.
func memoryOf(pid int, kind string) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), kind+":")
	kB, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseUint(kB, 10, 64)
	return n << 10
}
