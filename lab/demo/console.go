package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// consoleUser is who is signed in by the link to the demo's console, an operator.
const consoleUser = "demo"

// startConsole starts what operators see of a keeper in a browser: one keeper's is enough to look at.
func (k *Keeper) startConsole(ctx context.Context, config string) error {
	processes := make([]string, 0, len(k.Processes))
	for _, p := range k.Processes {
		processes = append(processes, p.Name+"=http://"+p.HTTP)
	}
	password := rand.Text()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hashing the console's password: %w", err)
	}
	line := fmt.Sprintf("%s operator %s\n", consoleUser, hash)
	if err := os.WriteFile(k.ConsoleUsers(), []byte(line), 0o600); err != nil {
		return fmt.Errorf("writing the console's users: %w", err)
	}
	if err := k.start(ctx, "console", "console", "--config", config, "--console.users", k.ConsoleUsers(),
		"--console.processes", strings.Join(processes, ",")); err != nil {
		return err
	}
	return k.openDoor(ctx, password)
}

// openDoor serves the link that signs a browser of this machine in. Cookies do not tell ports apart, so the session
// that is begun here is the console's. Who does not know the link is not let in.
func (k *Keeper) openDoor(ctx context.Context, password string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("opening the door of the console: %w", err)
	}
	secret, site := rand.Text(), "http://"+k.Process("console").HTTP
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+secret, func(w http.ResponseWriter, r *http.Request) {
		cookies, err := signIn(r.Context(), site, password)
		if err != nil {
			w.Header().Set("Refresh", "1")
			http.Error(w, fmt.Sprintf("The console is not there yet: %v. This page tries again.", err),
				http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header()["Set-Cookie"] = cookies
		http.Redirect(w, r, site, http.StatusSeeOther)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	k.stack.running.Go(func() { _ = server.Serve(l) }) // until it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	k.ConsoleLink = fmt.Sprintf("http://%s/%s", l.Addr(), secret)
	return nil
}

// signIn signs the demo's user in as a browser does, and returns the cookies that it is given for that.
func signIn(ctx context.Context, site, password string) (cookies []string, err error) {
	form := rand.Text()
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, site+"/signin", strings.NewReader(url.Values{
		"name": {consoleUser}, "password": {password}, "csrf": {form}}.Encode()))
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.AddCookie(&http.Cookie{Name: "perpkeeper_form", Value: form}) //nolint:gosec // it goes to this machine alone
	answer, err := http.DefaultTransport.RoundTrip(ask)               // the redirect is the browser's to follow
	if err != nil {
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSeeOther {
		return nil, fmt.Errorf("it answers %s", answer.Status)
	}
	return answer.Header["Set-Cookie"], nil
}

// ConsoleUsers is the file of who may sign in at the keeper's console.
func (k *Keeper) ConsoleUsers() string { return filepath.Join(k.dir, "console-users") }
