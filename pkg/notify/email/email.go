// Package email sends messages by SMTP, as plain text.
//
// Guaranteed: delivered means that the server has taken the message for every recipient. The connection is encrypted
// and the server's certificate checked, unless tls says none. A refusal for good (5yz) of a message is a refusal;
// anything else is tried again, a refused sign-in too: it says nothing of the message. Message-ID is made of the
// message's id and the receiver's name, so that mail programs show one that came twice once.
package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/service/check"
)

// Config is one [[notify.email]].
type Config struct {
	Name     string          `toml:"name" help:"the receiver's place in the results, and its name in metrics and logs"`
	Audience notify.Audience `toml:"audience" help:"owner or operator"`
	Server   string          `toml:"server" help:"HOST:PORT of the SMTP server"`
	TLS      string          `toml:"tls" help:"starttls (port 587; the default), implicit (port 465), or none, for a server on this machine"`
	User     string          `toml:"user" help:"whom to sign in as; empty = nobody"`
	Password secret.String   `toml:"password" help:"of the user"`
	From     string          `toml:"from" help:"the sender's address"`
	To       []string        `toml:"to" help:"the recipients' addresses"`

	roots *x509.CertPool // whom to trust besides the machine's authorities; for tests
}

// The ways to encrypt.
const (
	startTLS = "starttls"
	implicit = "implicit"
	none     = "none"
)

// Target implements [notify.Plugin].
func (c Config) Target() notify.Target { return notify.Target{Name: c.Name, Audience: c.Audience} }

// Validate implements [notify.Plugin].
func (c Config) Validate() error {
	var problems []error
	add := func(wrong bool, format string, args ...any) {
		problems = append(problems, check.Refuse(wrong, format, args...))
	}
	_, _, err := net.SplitHostPort(c.Server)
	add(err != nil, "server: %q is not HOST:PORT", c.Server)
	add(!slices.Contains([]string{"", startTLS, implicit, none}, c.TLS), "tls: %q is not one of %s, %s, %s", c.TLS,
		startTLS, implicit, none)
	add((c.User == "") != !c.Password.IsSet(), "user: goes with password (give both, or neither)")
	add(c.User != "" && c.TLS == none, "tls: a password is not sent in the clear (use %s)", startTLS)
	_, err = mail.ParseAddress(c.From)
	add(err != nil, "from: %q is not an address", c.From)
	add(len(c.To) == 0, "to: empty (name the recipients)")
	for _, to := range c.To {
		_, err := mail.ParseAddress(to)
		add(err != nil, "to: %q is not an address", to)
	}
	return errors.Join(problems...)
}

// Open implements [notify.Plugin].
func (c Config) Open(timeout time.Duration) notify.Notifier {
	return &mailbox{cfg: c, timeout: timeout, clock: time.Now}
}

type mailbox struct {
	cfg     Config
	timeout time.Duration
	clock   func() time.Time
}

// Notify implements [notify.Notifier].
func (b *mailbox) Notify(ctx context.Context, m notify.Message) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	err := b.send(ctx, m)
	// 530 is what a server says to whom it wants to sign in
	if answer, is := errors.AsType[*textproto.Error](err); is && answer.Code >= 500 && answer.Code != 530 {
		return notify.Refused(answer.Code, answer.Msg)
	}
	if err != nil {
		return fmt.Errorf("sending mail: %w", err)
	}
	return nil
}

func (b *mailbox) send(ctx context.Context, m notify.Message) error {
	client, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing depends on how it ends: the server has answered by then
	if err := b.signIn(client); err != nil {
		return err
	}
	if err := client.Mail(bare(b.cfg.From)); err != nil {
		return err
	}
	for _, to := range b.cfg.To {
		if err := client.Rcpt(bare(to)); err != nil {
			return err
		}
	}
	data, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(b.compose(m)); err != nil {
		return err
	}
	return data.Close() // which waits for the server's answer
}

// signIn shows the server who sends, by one of the ways that it offers. The error of a refusal is no [textproto.Error].
func (b *mailbox) signIn(client *smtp.Client) error {
	if b.cfg.User == "" {
		return nil
	}
	_, offered := client.Extension("AUTH")
	host, _, _ := net.SplitHostPort(b.cfg.Server) // the configuration was checked
	way := smtp.PlainAuth("", b.cfg.User, b.cfg.Password.Reveal(), host)
	if ways := strings.Fields(strings.ToUpper(offered)); !slices.Contains(ways, "PLAIN") {
		if !slices.Contains(ways, "LOGIN") {
			return fmt.Errorf("the server offers no way to sign in that is known here (it offers %q; PLAIN or LOGIN "+
				"is wanted)", offered)
		}
		way = login{b.cfg.User, b.cfg.Password}
	}
	if err := client.Auth(way); err != nil {
		return fmt.Errorf("signing in as %s (correct user or password): %s", b.cfg.User, err.Error())
	}
	return nil
}

// login is the way to sign in that some servers have alone: they ask for the name, and then for the password.
type login struct {
	user     string
	password secret.String
}

// Start implements [smtp.Auth]. A password is not sent in the clear.
func (l login) Start(server *smtp.ServerInfo) (way string, first []byte, err error) {
	if !server.TLS {
		return "", nil, errors.New("the connection is not encrypted")
	}
	return "LOGIN", nil, nil
}

// Next implements [smtp.Auth]. Servers ask in their own words: for the password with one that says so.
func (l login) Next(asked []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(strings.ToLower(string(asked)), "pass"):
		return []byte(l.password.Reveal()), nil
	}
	return []byte(l.user), nil
}

// connect opens an encrypted connection, unless none is wanted.
func (b *mailbox) connect(ctx context.Context) (*smtp.Client, error) {
	host, _, _ := net.SplitHostPort(b.cfg.Server) // the configuration was checked
	security := &tls.Config{ServerName: host, RootCAs: b.cfg.roots, MinVersion: tls.VersionTLS12}
	var conn net.Conn
	var err error
	if b.cfg.TLS == implicit {
		conn, err = (&tls.Dialer{Config: security}).DialContext(ctx, "tcp", b.cfg.Server)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", b.cfg.Server)
	}
	if err != nil {
		return nil, err
	}
	if deadline, is := ctx.Deadline(); is {
		_ = conn.SetDeadline(deadline) // a connection of the standard library takes one
	}
	client, err := smtp.NewClient(conn, host)
	if err != nil {
		_ = conn.Close() // the first error counts
		return nil, err
	}
	if b.cfg.TLS == none || b.cfg.TLS == implicit {
		return client, nil
	}
	if err := client.StartTLS(security); err != nil {
		_ = client.Close() // the first error counts
		return nil, err
	}
	return client, nil
}

// compose writes a message as RFC 5322 has it. Its text is quoted-printable: what a contract gave as the reason of a
// revert may have any length and any bytes.
func (b *mailbox) compose(m notify.Message) []byte {
	domain := bare(b.cfg.From)
	domain = domain[strings.LastIndexByte(domain, '@')+1:]
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '.'
	}, m.ID)
	var to []string
	for _, one := range b.cfg.To {
		to = append(to, parsed(one).String())
	}
	lines := []string{
		"From: " + parsed(b.cfg.From).String(), "To: " + strings.Join(to, ", "),
		"Subject: " + mime.QEncoding.Encode("utf-8", strings.ReplaceAll(m.Subject(), "\n", " ")),
		"Date: " + b.clock().Format(time.RFC1123Z),
		fmt.Sprintf("Message-ID: <%s.%s@%s>", id, b.cfg.Name, domain),
		"MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable",
		"Auto-Submitted: auto-generated", "", "",
	}
	var written bytes.Buffer
	written.WriteString(strings.Join(lines, "\r\n"))
	text := quotedprintable.NewWriter(&written)
	_, _ = io.WriteString(text, m.Text()+"\n") // a buffer takes everything
	_ = text.Close()
	return written.Bytes()
}

// bare is an address without a name.
func bare(address string) string { return parsed(address).Address }

// parsed is an address of the configuration, which was checked.
func parsed(address string) *mail.Address {
	a, err := mail.ParseAddress(address)
	if err != nil {
		return &mail.Address{Address: address}
	}
	return a
}
