package signin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const right = "correct horse battery"

// console is an authority with a file of its own and a clock that the test moves.
type console struct {
	*Authority

	path string
	at   time.Time
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

func TestHashesAreOfTheirPasswordAlone(t *testing.T) {
	hash := Hash(right)
	if hash == Hash(right) {
		t.Error("two hashes have the same salt")
	}
	d, err := parseHash(hash)
	if err != nil || !d.is(right) || d.is(right+"!") || d.is("") {
		t.Errorf("%s: %v, right %v, wrong %v", hash, err, d.is(right), d.is(right+"!"))
	}
}

// A vector of the reference implementation's own command line (phc-winner-argon2, test.c: version 0x13, argon2id,
// t=2, m=2^16, p=1, "password", "somesalt").
func TestHashOfTheReferenceImplementation(t *testing.T) {
	d, err := parseHash("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	if err != nil || !d.is("password") {
		t.Errorf("not recognized: %v", err)
	}
}

func TestNoTextPanicsAsAFileOfUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.OneOf(rapid.Just("ann"), rapid.Just("admin"), rapid.String(),
			rapid.Just("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"))).
			Draw(t, "words")
		_, _ = parseUsers(strings.Join(words, " "))
	})
}

func TestFilesThatCannotWorkAreRefused(t *testing.T) {
	good := Hash(right)
	for name, lines := range map[string]string{
		"two words":       "ann admin",
		"unknown role":    "ann root " + good,
		"a password":      "ann admin " + right,
		"twice":           "ann admin " + good + "\nann viewer " + good,
		"a hostile name":  "<b> admin " + good,
		"a huge hash":     "ann admin $argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"another version": strings.Replace("ann admin "+good, "v=19", "v=16", 1),
	} {
		_, err := parseUsers(lines)
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "battery") {
			t.Errorf("%s: the error tells what may be a password: %v", name, err)
		}
	}
}

func TestTheFirstUserComesByALinkThatIsUsedOnce(t *testing.T) {
	c := open(t)
	token, err := c.First()
	if err != nil || token == "" {
		t.Fatal(token, err)
	}
	if _, err := c.Accept("another", "ann", right); !errors.Is(err, ErrInvite) {
		t.Errorf("a guessed link: %v", err)
	}
	if _, err := c.Accept(token, "ann", "short"); err == nil {
		t.Error("a short password is accepted")
	}
	user, err := c.Accept(token, "ann", right)
	if err != nil || user.Role != Admin {
		t.Fatal(user, err)
	}
	if _, err := c.Accept(token, "eve", right); !errors.Is(err, ErrInvite) {
		t.Errorf("the link is used twice: %v", err)
	}
	if err := c.users.Add(User{Name: "ann", Role: Viewer, Hash: Hash(right)}); !errors.Is(err, ErrTaken) {
		t.Errorf("a name that is taken: %v", err)
	}
	if again, err := c.First(); err != nil || again != "" {
		t.Errorf("another first link: %q %v", again, err)
	}
	if info, err := os.Stat(c.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of users: %v %v", info.Mode(), err)
	}
	if _, err := c.SignIn("ann", right, "::1"); err != nil {
		t.Error(err)
	}
}

func TestWrongNamesAndPasswordsAreAnsweredAlike(t *testing.T) {
	c := open(t, "ann viewer "+Hash(right))
	for _, try := range [][2]string{{"ann", "wrong password"}, {"bob", right}, {"", ""}, {"ann", ""}} {
		if _, err := c.SignIn(try[0], try[1], "::1"); !errors.Is(err, ErrWrong) {
			t.Errorf("%v: %v", try, err)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	line := "ann operator " + Hash(right)
	begin := func(t *testing.T) (*console, string) {
		c := open(t, line)
		token, err := c.SignIn("ann", right, "::1")
		if err != nil {
			t.Fatal(err)
		}
		if s, open := c.Find(token); !open || s.Name != "ann" || s.Role != Operator || s.Secret == "" {
			t.Fatal("not signed in", s)
		}
		return c, token
	}
	for name, end := range map[string]func(*testing.T, *console){
		"after their life":             func(_ *testing.T, c *console) { c.at = c.at.Add(Life) },
		"when revoked":                 func(_ *testing.T, c *console) { c.Revoke(c.Sessions()[0].ID) },
		"with their user":              func(t *testing.T, c *console) { c.write(t, "# nobody") },
		"when the password is another": func(t *testing.T, c *console) { c.write(t, "ann operator "+Hash(right)+" ") },
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

func TestTriesAreCounted(t *testing.T) {
	c := open(t, "ann viewer "+Hash(right))
	for range triesOfName {
		if _, err := c.SignIn("ann", "wrong password", "::1"); !errors.Is(err, ErrWrong) {
			t.Fatal(err)
		}
	}
	if _, err := c.SignIn("ann", right, "10.0.0.1"); !errors.Is(err, ErrTooMany) {
		t.Errorf("the right password after %d wrong ones: %v", triesOfName, err)
	}
	c.at = c.at.Add(tryWindow)
	if _, err := c.SignIn("ann", right, "::1"); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	var l limiter
	for i := range mostCounted {
		l.allow(c.at, string(rune(i)), 1)
	}
	if l.allow(c.at, "one more", 1) || len(l.tries) > mostCounted {
		t.Errorf("%d keys are counted", len(l.tries))
	}
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
