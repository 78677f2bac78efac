// Package postgres runs a real PostgreSQL server as a child of this process: for tests, and for the demo that needs
// nothing installed.
//
// Guaranteed: the server listens on the loopback interface only and asks for a random password; it is never run as
// root; it dies with its parent, also when the parent is killed; a data directory that this package made up itself is
// removed, at the latest by a Start on the machine a minute later.
//
// Not guaranteed: production durability. It is one server with default checkpoints and no backup.
package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Config is where the server keeps its data, and how durable its writes are. The zero Config gives a throw-away server
// on a free port.
type Config struct {
	// DataDir holds the data, the log and the password. Empty means a fresh directory that Stop removes; otherwise a
	// server that ran there before goes on with its data.
	DataDir string
	// Port to listen on; 0 picks a free one.
	Port int
	// NoSync lets the server lose its data when the machine crashes, which tests do not mind: commits no longer wait
	// for the disk.
	NoSync bool
}

// Server is a running server.
type Server struct {
	home     home
	process  *process
	port     int
	password string
}

const (
	superuser     = "keeper"
	startAttempts = 5
	startTimeout  = 60 * time.Second
	stopTimeout   = 20 * time.Second
)

// Start prepares the data directory if need be and returns when the server accepts connections.
func Start(cfg Config) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	h, err := openHome(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	s, err := start(cfg, bin, h)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return s, nil
}

func start(cfg Config, bin string, h home) (*Server, error) {
	password, err := h.initialize(bin)
	if err != nil {
		return nil, err
	}
	// A free port may be taken by another process before the server binds it; only then is another one tried.
	for attempt := 1; ; attempt++ {
		port, err := pickPort(cfg.Port)
		if err != nil {
			return nil, err
		}
		p, err := launch(bin, h, settings(port, cfg.NoSync))
		if err == nil {
			return &Server{home: h, process: p, port: port, password: password}, nil
		}
		if cfg.Port != 0 || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

// URL returns the address of a database of this server, with the superuser's name and password. Empty means the
// database "postgres"; other databases are the caller's to create.
func (s *Server) URL(database string) string {
	if database == "" {
		database = "postgres"
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     "127.0.0.1:" + strconv.Itoa(s.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server, cutting its connections, and removes a data directory that Start made up. It may be called more
// than once.
func (s *Server) Stop() error {
	err := s.process.stop(s.home.temporary)
	return errors.Join(err, s.home.close())
}

// Done is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.process.done }

func settings(port int, noSync bool) []string {
	values := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=", // No socket file: nothing to protect, and no path too long for one.
		"max_connections=200",
		"timezone=UTC",
	}
	if noSync {
		values = append(values, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	return values
}

// tail returns the last lines of the server's log, for error messages.
func tail(logFile string) string {
	const keep = 8
	text, err := os.ReadFile(filepath.Clean(logFile))
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n")
}
