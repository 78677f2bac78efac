//go:build unix

package keeperctl

import "syscall"

// space is what the file system of a path has for those who are not root, and has in all, in bytes.
func space(path string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize)
	return s.Bavail * size, s.Blocks * size, nil
}
