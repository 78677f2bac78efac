package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of a sign-in. They do not say whether the name is known.
var (
	ErrWrong   = errors.New("the name or the password is wrong")
	ErrTooMany = errors.New("too many tries: wait a minute")
	ErrInvite  = errors.New("this link was used already, or is over; where there are no users yet a restart writes a " +
		"new one to the log")
)

// InviteLife is for how long the form that makes the first user can be sent after it was asked for. The link to it
// holds as long as the process runs and has no users.
const InviteLife = time.Hour

// hashesAtOnce bounds the memory that passwords being checked take.
const hashesAtOnce = 2

// Authority decides who is signed in. It is safe for concurrent use.
type Authority struct {
	users    *Users
	now      func() time.Time
	sessions sessions
	limit    limiter
	hashing  chan struct{}

	mutex   sync.Mutex
	invites map[[sha256.Size]byte]Role
}

// NewAuthority decides by a file of users and a clock.
func NewAuthority(users *Users, now func() time.Time) *Authority {
	return &Authority{users: users, now: now, hashing: make(chan struct{}, hashesAtOnce),
		invites: map[[sha256.Size]byte]Role{}}
}

// First returns the token of the link that makes the first user, an admin; empty where there are users.
func (a *Authority) First() (token string, err error) {
	all, err := a.users.All()
	if err != nil || len(all) > 0 {
		return "", err
	}
	token = Random()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.invites[sha256.Sum256([]byte(token))] = Admin
	return token, nil
}

// Invited returns the role that a link's token gives.
func (a *Authority) Invited(token string) (Role, error) {
	a.mutex.Lock()
	role, known := a.invites[sha256.Sum256([]byte(token))]
	a.mutex.Unlock()
	if !known {
		return 0, ErrInvite
	}
	if all, err := a.users.All(); err != nil || len(all) > 0 {
		return 0, errors.Join(err, ErrInvite)
	}
	return role, nil
}

// Accept makes the user that a link is for. The link is used up when there is one.
func (a *Authority) Accept(token, name, password string) (User, error) {
	role, err := a.Invited(token)
	if err != nil {
		return User{}, err
	}
	if err := errors.Join(checkName(name), checkPassword(password)); err != nil {
		return User{}, err
	}
	key := sha256.Sum256([]byte(token))
	a.mutex.Lock()
	_, known := a.invites[key]
	delete(a.invites, key) // nobody else may use it meanwhile
	a.mutex.Unlock()
	if !known {
		return User{}, ErrInvite
	}
	user := User{Name: name, Role: role, Hash: Hash(password)}
	if err := a.users.Add(user); err != nil {
		a.mutex.Lock()
		a.invites[key] = role
		a.mutex.Unlock()
		return User{}, err
	}
	return user, nil
}

// SignIn begins a session for who knows the password, and returns its token.
func (a *Authority) SignIn(name, password, from string) (token string, err error) {
	now := a.now()
	if !a.limit.allow(now, "address "+from, triesOfAddress) || !a.limit.allow(now, "name "+name, triesOfName) {
		return "", ErrTooMany
	}
	user, known, err := a.users.Find(name)
	if err != nil {
		return "", fmt.Errorf("looking up who signs in: %w", err)
	}
	expected := nobody
	if known {
		if expected, err = parseHash(user.Hash); err != nil {
			return "", err
		}
	}
	a.hashing <- struct{}{}
	right := len(password) <= longestPassword && expected.is(password)
	<-a.hashing
	if !right || !known {
		return "", ErrWrong
	}
	return a.sessions.begin(Session{Name: user.Name, Role: user.Role, From: from, Begun: now, hash: user.Hash}), nil
}

// Find returns the session of a token, with the role that the file gives its user now.
func (a *Authority) Find(token string) (Session, bool) {
	session, open := a.sessions.find(token, a.now())
	if !open {
		return Session{}, false
	}
	user, known, err := a.users.Find(session.Name)
	if err != nil || !known || subtle.ConstantTimeCompare([]byte(user.Hash), []byte(session.hash)) != 1 {
		return Session{}, false
	}
	session.Role = user.Role
	return session, true
}

// Sessions are those that are open, the newest first.
func (a *Authority) Sessions() []Session { return a.sessions.all(a.now()) }

// Revoke ends the session of an ID.
func (a *Authority) Revoke(id string) (ended bool) {
	return a.sessions.end(func(s Session) bool { return s.ID == id }) > 0
}

// Tries of a minute: of one address, which may be that of a whole office, and of one name from wherever.
const (
	triesOfAddress = 20
	triesOfName    = 10
	tryWindow      = time.Minute
	mostCounted    = 10_000 // keys that are counted at a time; beyond it nobody new may try before the minute is over
)

// limiter counts tries of a minute by key.
type limiter struct {
	mutex sync.Mutex
	began time.Time
	tries map[string]int
}

// allow counts one try of a key and reports whether it is within the limit.
func (l *limiter) allow(now time.Time, key string, most int) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.tries == nil || now.Sub(l.began) >= tryWindow || now.Before(l.began) {
		l.began, l.tries = now, map[string]int{}
	}
	if _, counted := l.tries[key]; !counted && len(l.tries) >= mostCounted {
		return false
	}
	l.tries[key]++
	return l.tries[key] <= most
}
