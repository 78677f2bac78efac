package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"
)

// ErrWrong is the error of a sign-in. It does not say whether the name is known.
var ErrWrong = errors.New("the name or the password is wrong")

// Authority decides who is signed in. It is safe for concurrent use.
type Authority struct {
	users    *Users
	now      func() time.Time
	sessions sessions
	checks   *checks
}

// NewAuthority decides by a file of users and a clock.
func NewAuthority(users *Users, now func() time.Time) *Authority {
	return &Authority{users: users, now: now, checks: newChecks()}
}

// SignIn begins a session for who knows the password, and returns its token. from is the address that asks.
func (a *Authority) SignIn(ctx context.Context, name, password, from string) (token string, err error) {
	user, known, err := a.users.Find(name)
	if err != nil {
		return "", fmt.Errorf("looking up who signs in: %w", err)
	}
	hash := user.Hash
	if !known {
		hash = string(nobody())
	}
	right, err := a.checks.compare(ctx, from, hash, password)
	if err != nil {
		return "", fmt.Errorf("checking a password: %w", err)
	}
	if !right || !known {
		select {
		case <-time.After(wrongDelay):
		case <-ctx.Done():
		}
		return "", ErrWrong
	}
	return a.sessions.begin(Session{Name: user.Name, Role: user.Role, Begun: a.now(), hash: user.Hash}), nil
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

// SignOut ends the session of a token.
func (a *Authority) SignOut(token string) { a.sessions.end(token) }
