//go:build !linux

package demo

import "syscall"

// dieWithParent does what this system can: a process group of its own. Orphans of a killed demo have to be ended by
// hand.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
