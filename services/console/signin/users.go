package signin

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// User is one line of the file.
type User struct {
	Name string
	Role Role
	Hash string // of bcrypt
}

// Users are those of a file with a line for each: NAME ROLE HASH, apart by spaces; lines that begin with # say nothing.
// The file is read again when it has changed. It is safe for concurrent use.
type Users struct {
	path string

	mutex   sync.Mutex
	known   []User
	modTime time.Time
	size    int64
}

// OpenUsers reads a file of users. One that does not exist has none.
func OpenUsers(path string) (*Users, error) {
	u := &Users{path: path, size: -1}
	_, err := u.read()
	return u, err
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// checkName refuses what is no name of a user.
func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return errors.New("a name has 1 to 64 of the letters A-Z a-z 0-9 . _ @ -, and begins with a letter or digit")
	}
	return nil
}

// Empty reports whether nobody can sign in.
func (u *Users) Empty() bool { return len(u.known) == 0 }

// Find returns the user of a name.
func (u *Users) Find(name string) (user User, known bool, err error) {
	u.mutex.Lock()
	all, err := u.read()
	u.mutex.Unlock()
	i := slices.IndexFunc(all, func(user User) bool { return user.Name == name })
	if err != nil || i < 0 {
		return User{}, false, err
	}
	return all[i], true, nil
}

func (u *Users) read() ([]User, error) {
	info, err := os.Stat(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		u.known, u.size = nil, -1
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the file of users: %w", err)
	}
	if info.Size() == u.size && info.ModTime().Equal(u.modTime) {
		return u.known, nil
	}
	text, err := os.ReadFile(u.path)
	if err != nil {
		return nil, fmt.Errorf("reading the file of users: %w", err)
	}
	known, err := parseUsers(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.path, err)
	}
	u.known, u.size, u.modTime = known, info.Size(), info.ModTime()
	return known, nil
}

func parseUsers(text string) (all []User, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		user, err := parseUser(fields)
		if err == nil && slices.ContainsFunc(all, func(other User) bool { return other.Name == user.Name }) {
			err = fmt.Errorf("the user %s stands there twice", user.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w (write NAME ROLE HASH)", n, err)
		}
		all = append(all, user)
	}
	return all, lines.Err()
}

// parseUser's errors never show what stands where the hash should: it may be a password.
func parseUser(fields []string) (user User, err error) {
	if len(fields) != 3 {
		return user, fmt.Errorf("it has %d words", len(fields))
	}
	if err := checkName(fields[0]); err != nil {
		return user, err
	}
	if user.Role, err = parseRole(fields[1]); err != nil {
		return user, err
	}
	if err := checkHash(fields[2]); err != nil {
		return user, fmt.Errorf("what stands for %s %w", fields[0], err)
	}
	user.Name, user.Hash = fields[0], fields[2]
	return user, nil
}

// Role is what somebody may do. Each role may do what those before it may.
type Role int

// The roles.
const (
	Viewer   Role = iota + 1 // sees everything
	Operator                 // acts on signers, delayed jobs and dead letters
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator"}

// String is the role's name in the file of users.
func (r Role) String() string { return roleNames[r] }

// May reports whether somebody of this role may do what needs another.
func (r Role) May(needed Role) bool { return r >= needed }

// parseRole reads a role's name.
func parseRole(text string) (Role, error) {
	for role, name := range roleNames {
		if name == text {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%q is no role (write viewer or operator)", text)
}
