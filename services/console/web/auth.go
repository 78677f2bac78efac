package web

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/signin"
)

// Cookies. The prefix has browsers take them over https alone, for this host and no other; over plain http, which is
// for loopback, browsers would refuse it.
const (
	sessionCookie = "perpkeeper_session"
	formCookie    = "perpkeeper_form" // what forms carry before there is a session
	hostPrefix    = "__Host-"
)

// formLife is for how long a form can be sent after it was asked for.
const formLife = time.Hour

func (c *console) cookieName(name string) string {
	if c.TLS {
		return hostPrefix + name
	}
	return name
}

func (c *console) setCookie(w http.ResponseWriter, name, value string, seconds int) {
	//nolint:gosec // Secure wherever there is TLS; over plain http, on loopback, browsers would not keep such a cookie
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(name), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		Secure: c.TLS, SameSite: http.SameSiteStrictMode})
}

func (c *console) cookie(r *http.Request, name string) string {
	found, err := r.Cookie(c.cookieName(name))
	if err != nil {
		return ""
	}
	return found.Value
}

// session is who is signed in.
func (c *console) session(r *http.Request) (signin.Session, bool) {
	token := c.cookie(r, sessionCookie)
	if token == "" {
		return signin.Session{}, false
	}
	return c.Authority.Find(token)
}

// handler is one for somebody who is signed in.
type handler func(w http.ResponseWriter, r *http.Request, s signin.Session)

// authenticated lets those in that are signed in and have the role; a form has to carry the session's secret as well.
func (c *console) authenticated(needs signin.Role, next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, open := c.session(r)
		switch {
		case !open && r.Method == http.MethodGet && r.Header.Get(fragmentHeader) == "":
			http.Redirect(w, r, "/signin", http.StatusSeeOther)
		case !open:
			w.Header().Set("Hx-Redirect", "/signin")
			http.Error(w, "not signed in", http.StatusUnauthorized)
		case !s.Role.May(needs):
			c.refuse(w, s, http.StatusForbidden, "This needs the role "+needs.String()+"; you are "+s.Role.String()+".")
		case r.Method == http.MethodPost && !sameSecret(r.PostFormValue("csrf"), s.Secret):
			c.refuse(w, s, http.StatusForbidden, "The form is not of this session. Open the page again.")
		default:
			next(w, r, s)
		}
	}
}

func sameSecret(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// address is where a browser is: the peer's address, and the one that a trusted proxy says where the peer is one. A
// proxy appends whom it heard from, so the last entry that is no trusted proxy's is believed, and no earlier one.
func (c *console) address(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	peer := at.Addr().Unmap()
	heard := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(heard) {
		before, err := netip.ParseAddr(strings.TrimSpace(text))
		if !c.trusted(peer) || err != nil {
			break
		}
		peer = before.Unmap()
	}
	return peer.String()
}

func (c *console) trusted(peer netip.Addr) bool {
	return slices.ContainsFunc(c.Proxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// formSecret is what the forms of somebody carry who is not signed in: the value of a cookie.
func (c *console) formSecret(w http.ResponseWriter, r *http.Request) string {
	if had := c.cookie(r, formCookie); had != "" {
		return had
	}
	made := signin.Random()
	c.setCookie(w, formCookie, made, int(formLife.Seconds()))
	return made
}

// form is what the pages before a session show.
type form struct {
	CSRF, Name, Problem string
}

func (c *console) signInPage(w http.ResponseWriter, r *http.Request) {
	if _, open := c.session(r); open {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	c.show(w, http.StatusOK, "signin", form{CSRF: c.formSecret(w, r)})
}

func (c *console) signIn(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSpace(r.PostFormValue("name"))
	again := func(status int, problem string) {
		c.show(w, status, "signin", form{CSRF: c.formSecret(w, r), Name: name, Problem: problem})
	}
	if !sameSecret(r.PostFormValue("csrf"), c.cookie(r, formCookie)) {
		again(http.StatusForbidden, "The form was too old. Try again.")
		return
	}
	token, err := c.Authority.SignIn(r.Context(), name, r.PostFormValue("password"), c.address(r))
	switch {
	case errors.Is(err, signin.ErrWrong):
		c.Log.Warn().Str("name", name).Str("address", c.address(r)).Msg("a sign-in was refused")
		again(http.StatusUnauthorized, "The name or the password is wrong.")
	case err != nil:
		c.Log.Error().Err(err).Msg("a sign-in failed")
		again(http.StatusInternalServerError, "The file of users cannot be read. The log says why.")
	default:
		c.admit(w, r, token)
	}
}

// admit gives the browser its session, and writes down that it began.
func (c *console) admit(w http.ResponseWriter, r *http.Request, token string) {
	s, _ := c.Authority.Find(token)
	c.setCookie(w, sessionCookie, token, int(signin.Life.Seconds()))
	c.note(r, s, "sign in", s.Name)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *console) signOut(w http.ResponseWriter, r *http.Request, s signin.Session) {
	c.Authority.SignOut(c.cookie(r, sessionCookie))
	c.setCookie(w, sessionCookie, "", -1)
	c.note(r, s, "sign out", s.Name)
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

// note writes down what is no change of the keeper. Where it cannot be written the log has it: who looks at a keeper
// whose database is away has to be able to sign in.
func (c *console) note(r *http.Request, s signin.Session, action, target string) {
	err := c.DB.ConsoleActions().Record(r.Context(), pg.ConsoleAction{Run: uuid.New(), Who: s.Name,
		Role: s.Role.String(), Address: c.address(r), Action: action, Target: target, Stage: pg.ActionDone})
	c.Log.Info().Err(err).Str("who", s.Name).Str("address", c.address(r)).Str("action", action).Msg("console")
}
