package postgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the operating system user the server runs as: ourselves, or, since the server refuses to run as root,
// somebody harmless.
type account struct {
	name     string
	uid, gid uint32
	switched bool
}

// unprivileged picks the account.
func unprivileged() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return parseAccount(u)
		}
	}
	return account{},
		fmt.Errorf("the database server cannot run as root, and this machine has neither a user postgres nor nobody " +
			"(add one, or run as another user)")
}

func parseAccount(u *user.User) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s has no numeric id: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s has no numeric group id: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uint32(uid), gid: uint32(gid), switched: true}, nil
}

// credential is what a child is started with; nil keeps ours.
func (a account) credential() *syscall.Credential {
	if !a.switched {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// own hands a file or an empty directory to the account.
func (a account) own(path string) error {
	if !a.switched {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("giving %s to user %s: %w", path, a.name, err)
	}
	return nil
}
