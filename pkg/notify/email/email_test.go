package email

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
)

// server speaks as much SMTP as a client needs, and answers RCPT with what it is set to.
type server struct {
	net.Listener
	tls  *tls.Config
	rcpt string
	auth string   // the ways to sign in that it offers
	in   string   // its answer to whoever signs in
	said []string // what clients sent, in order; read after a message was delivered or refused
	done chan struct{}
}

func newServer(t *testing.T) (*server, *x509.CertPool) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // for its certificate, which is valid for 127.0.0.1
	t.Cleanup(lender.Close)
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: listener, tls: &tls.Config{Certificates: lender.TLS.Certificates}, rcpt: "250 yes",
		auth: "PLAIN", in: "235 welcome", done: make(chan struct{}, 8)}
	go s.serve()
	t.Cleanup(func() { _ = s.Close() })
	return s, roots
}

func (s *server) serve() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		s.talk(conn)
		_ = conn.Close()
		s.done <- struct{}{}
	}
}

func (s *server) talk(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	answer := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	answer("220 mail")
	for lines.Scan() {
		line := lines.Text()
		s.said = append(s.said, line)
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "EHLO":
			answer("250-mail\r\n250-STARTTLS\r\n250 AUTH " + s.auth)
		case "STARTTLS":
			answer("220 go on")
			conn = tls.Server(conn, s.tls)
			lines = bufio.NewScanner(conn)
		case "AUTH":
			for _, question := range map[bool][]string{true: {"Username:", "Password:"}}[line == "AUTH LOGIN"] {
				answer("334 " + base64.StdEncoding.EncodeToString([]byte(question)))
				lines.Scan()
				given, _ := base64.StdEncoding.DecodeString(lines.Text())
				s.said = append(s.said, question+string(given))
			}
			answer(s.in)
		case "RCPT":
			answer(s.rcpt)
		case "DATA":
			answer("354 go on")
			for lines.Scan() && lines.Text() != "." {
				s.said = append(s.said, lines.Text())
			}
			answer("250 taken")
		case "QUIT":
			answer("221 bye")
			return
		default:
			answer("250 yes")
		}
	}
}

var message = notify.Message{ID: "liquidation:x:1#2", Event: notify.LiquidationFailed, ChainID: 56,
	Liquidation: &notify.Liquidation{Position: "0xp", Reason: "zu spät"}}

// LIQ-12: a message reaches every recipient over an encrypted connection, after the server's certificate was checked;
// it can be read as mail, and twice the same is one for mail programs.
func TestNotify(t *testing.T) {
	s, roots := newServer(t)
	c := Config{Name: "box", Audience: notify.Operator, Server: s.Addr().String(), User: "keeper",
		Password: secret.New("a password"), From: "Keeper <keeper@example.org>",
		To: []string{"ops@example.org", "Night <night@example.org>"}, roots: roots}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := c.Open(5*time.Second).Notify(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	<-s.done
	said := strings.Join(s.said, "\n")
	for _, want := range []string{"STARTTLS", "AUTH PLAIN ", "MAIL FROM:<keeper@example.org>",
		"RCPT TO:<ops@example.org>", "RCPT TO:<night@example.org>"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q was not sent: %s", want, said)
		}
	}
	_, data, _ := strings.Cut(said, "DATA\n")
	read, err := mail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if got := read.Header.Get("Message-ID"); got != "<liquidation.x.1.2.box@example.org>" {
		t.Errorf("the id is %s", got)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(read.Body))
	if got := read.Header.Get("Subject"); err != nil || got != "liquidation.failed: position 0xp (chain 56)" ||
		!strings.Contains(string(text), "reason: zu spät\n") {
		t.Errorf("%v, the mail is %s", err, data)
	}

	c.roots = nil
	if err := c.Open(5*time.Second).Notify(t.Context(), message); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server whom nobody vouches for: %v", err)
	}
}

// A name and a text of whatever bytes make a mail of ASCII lines that every server takes, with the headers it has to
// have and no other.
func TestMailIsWellFormed(t *testing.T) {
	hostile := message
	hostile.Liquidation = &notify.Liquidation{Position: "0xp\r\nBcc: all@example.org",
		Reason: "\x00\r.\rDATA" + strings.Repeat("ü", 2000)}
	box := mailbox{cfg: Config{Name: "box", From: "Wächter <keeper@example.org>", To: []string{"ops@example.org"}},
		clock: time.Now}
	written := string(box.compose(hostile))
	for line := range strings.SplitSeq(written, "\r\n") {
		if len(line) > 200 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("a line is %q", line)
		}
	}
	read, err := mail.ReadMessage(strings.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	if from, err := read.Header.AddressList("From"); err != nil || from[0].Name != "Wächter" ||
		len(read.Header) != 9 || read.Header.Get("Bcc") != "" {
		t.Errorf("%v, the headers are %v", err, read.Header)
	}
}

// What a server refuses for good is a refusal, with no more than the beginning of what it said; what it refuses for now
// is tried again.
func TestRefusals(t *testing.T) {
	for rcpt, refused := range map[string]bool{"550 " + strings.Repeat("no such user ", 100): true,
		"451 come back later": false, "530 5.7.0 sign in first": false} {
		s, _ := newServer(t)
		s.rcpt = rcpt
		c := Config{Name: "box", Server: s.Addr().String(), TLS: none, From: "a@example.org",
			To: []string{"b@example.org"}}
		err := c.Open(5*time.Second).Notify(t.Context(), message)
		told, is := errors.AsType[*notify.RefusedError](err)
		if err == nil || is != refused || is && len(told.Body) > 256 {
			t.Errorf("%s: %v", rcpt, err)
		}
	}
}

// Whoever signs in does so by a way that the server offers, also where that is LOGIN alone. A refused sign-in says
// nothing of the message: it is waited for, and named, and the message does not become a dead letter by it.
func TestSignsIn(t *testing.T) {
	for _, c := range []struct {
		offers, answer, sent, want string // want is in the error; empty for none
	}{
		{"PLAIN LOGIN", "235 welcome", "AUTH PLAIN ", ""},
		{"XOAUTH2 LOGIN", "235 welcome", "Username:keeper\nPassword:a password", ""},
		{"LOGIN", "535 5.7.8 bad credentials", "AUTH LOGIN",
			"signing in as keeper (correct user or password): 535 \"5.7.8"},
		{"PLAIN", "534 5.7.9 application-specific password required", "AUTH PLAIN ", "signing in as keeper"},
		{"GSSAPI", "", "EHLO ", `it offers "GSSAPI"`},
	} {
		s, roots := newServer(t)
		s.auth, s.in = c.offers, c.answer
		box := Config{Name: "box", Server: s.Addr().String(), User: "keeper", Password: secret.New("a password"),
			From: "a@example.org", To: []string{"b@example.org"}, roots: roots}
		err := box.Open(5*time.Second).Notify(t.Context(), message)
		_, refused := errors.AsType[*notify.RefusedError](err)
		if refused || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("offers %s, answers %q: refused %t, %v", c.offers, c.answer, refused, err)
		}
		<-s.done
		if said := strings.Join(s.said, "\n"); !strings.Contains(said, c.sent) {
			t.Errorf("offers %s: %q was not sent: %s", c.offers, c.sent, said)
		}
	}
}

func TestValidate(t *testing.T) {
	err := (Config{Server: "mail.example.org", TLS: none, User: "a", Password: secret.New("a password"), From: "me",
		To: []string{"you"}}).Validate()
	for _, want := range []string{"server: ", "tls: a password is not sent in the clear", `from: "me"`, `to: "you"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	err = (Config{Server: "h:25", TLS: "ssl", User: "a", From: "a@b.c"}).Validate()
	for _, want := range []string{`tls: "ssl"`, "user: goes with password", "to: empty"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
