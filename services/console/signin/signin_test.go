package signin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
	"pgregory.net/rapid"
)

const right = "correct horse battery"

// console is an authority with a file of its own and a clock that the test moves.
type console struct {
	*Authority

	path  string
	at    time.Time
	token string // of who has signed in
}

// hashOf costs next to nothing.
func hashOf(password string) string {
	hash, _ := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	return string(hash)
}

func open(t *testing.T, lines ...string) *console {
	t.Helper()
	c := &console{path: filepath.Join(t.TempDir(), "users"), at: time.Unix(1_700_000_000, 0)}
	if len(lines) > 0 {
		c.write(t, lines...)
	}
	users, err := OpenUsers(c.path)
	if err != nil {
		t.Fatal(err)
	}
	c.Authority = NewAuthority(users, func() time.Time { return c.at })
	return c
}

func (c *console) write(t *testing.T, lines ...string) {
	t.Helper()
	if err := os.WriteFile(c.path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNoTextPanicsAsAFileOfUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.OneOf(rapid.Just("ann"), rapid.Just("admin"), rapid.String(),
			rapid.Just(hashOf(right)))).
			Draw(t, "words")
		_, _ = parseUsers(strings.Join(words, " "))
	})
}

func TestFilesThatCannotWorkAreRefused(t *testing.T) {
	good := hashOf(right)
	for name, lines := range map[string]string{
		"two words":       "ann operator",
		"unknown role":    "ann root " + good,
		"a password":      "ann operator " + right,
		"twice":           "ann operator " + good + "\nann viewer " + good,
		"a hostile name":  "<b> operator " + good,
		"a hash of hours": "ann operator " + strings.Replace(good, "$2a$04$", "$2a$31$", 1),
		"another kind":    "a viewer $argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
	} {
		_, err := parseUsers(lines)
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "battery") {
			t.Errorf("%s: the error tells what may be a password: %v", name, err)
		}
	}
}

func TestWrongNamesAndPasswordsAreAnsweredAlike(t *testing.T) {
	c := open(t, "ann viewer "+hashOf(right))
	for _, try := range [][2]string{{"ann", "wrong password"}, {"bob", right}, {"", ""}, {"ann", ""}} {
		if _, err := c.SignIn(t.Context(), try[0], try[1], "::1"); !errors.Is(err, ErrWrong) {
			t.Errorf("%v: %v", try, err)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	line := "ann operator " + hashOf(right)
	begin := func(t *testing.T) (*console, string) {
		c := open(t, line)
		token, err := c.SignIn(t.Context(), "ann", right, "::1")
		if err != nil {
			t.Fatal(err)
		}
		if s, open := c.Find(token); !open || s.Name != "ann" || s.Role != Operator || s.Secret == "" {
			t.Fatal("not signed in", s)
		}
		c.token = token
		return c, token
	}
	for name, end := range map[string]func(*testing.T, *console){
		"after their life":             func(_ *testing.T, c *console) { c.at = c.at.Add(Life) },
		"when signed out":              func(_ *testing.T, c *console) { c.SignOut(c.token) },
		"with their user":              func(t *testing.T, c *console) { c.write(t, "# nobody") },
		"when the password is another": func(t *testing.T, c *console) { c.write(t, "ann operator "+hashOf(right)+" ") },
	} {
		t.Run(name, func(t *testing.T) {
			c, token := begin(t)
			end(t, c)
			if _, open := c.Find(token); open {
				t.Error("still signed in")
			}
		})
	}
	c, token := begin(t)
	c.write(t, strings.Replace(line, "operator", "viewer", 1))
	if s, open := c.Find(token); !open || s.Role != Viewer {
		t.Errorf("the role is %s, and the file says viewer", s.Role)
	}
}

// A kind of lock-out: somebody without a password keeps its owner out by trying. However many wrong tries are under
// way, from wherever, the right password is taken, and each wrong one is answered late.
func TestWrongPasswordsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "ann viewer "+hashOf(right))
		began := time.Now()
		var wrong sync.WaitGroup
		for i := range 200 {
			wrong.Go(func() {
				_, err := c.SignIn(t.Context(), "ann", "wrong", fmt.Sprint("10.0.0.", i%5))
				if !errors.Is(err, ErrWrong) || time.Since(began) < wrongDelay {
					t.Errorf("a wrong password is answered %v after %s", err, time.Since(began))
				}
			})
		}
		if _, err := c.SignIn(t.Context(), "ann", right, "10.0.0.1"); err != nil || time.Since(began) > 0 {
			t.Errorf("the right password after %s: %v", time.Since(began), err)
		}
		wrong.Wait()
		if len(c.checks.addresses) > 0 {
			t.Errorf("%d addresses are remembered", len(c.checks.addresses))
		}
	})
}

// One address has one password checked at a time, so that it never holds every core.
func TestOneAddressHasOneCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := newChecks()
		a := checks.enter("10.0.0.1")
		a.busy <- struct{}{} // as if one were under way
		ctx, gone := context.WithCancel(t.Context())
		go func() {
			if _, err := checks.compare(ctx, "10.0.0.1", hashOf(right), right); !errors.Is(err, context.Canceled) {
				t.Errorf("a second check of the address: %v", err)
			}
		}()
		synctest.Wait()
		if got, err := checks.compare(ctx, "10.0.0.2", hashOf(right), right); err != nil || !got {
			t.Errorf("another address: %v %v", got, err)
		}
		gone()
		synctest.Wait()
	})
}

func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	at := time.Unix(1_700_000_000, 0)
	first := s.begin(Session{Begun: at})
	for i := range mostSessions {
		s.begin(Session{Begun: at.Add(time.Duration(i+1) * time.Second)})
	}
	if _, open := s.find(first, at); open || len(s.byKey) > mostSessions {
		t.Errorf("%d sessions, the first is open: %v", len(s.byKey), open)
	}
}
