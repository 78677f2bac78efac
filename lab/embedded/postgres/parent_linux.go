package postgres

import "syscall"

// dieWithParent asks the kernel for a fast shutdown of the child when we are gone.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
