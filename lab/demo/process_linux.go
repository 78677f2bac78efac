package demo

import "syscall"

// dieWithParent leaves no orphans behind when the demo itself is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
