//go:build !linux

package postgres

import "syscall"

// dieWithParent does nothing here: only Linux tells a child that its parent has died. Elsewhere a killed parent leaves
// a server behind.
func dieWithParent(*syscall.SysProcAttr) {}
