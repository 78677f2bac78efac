package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// What one request may take. A profile of half a minute and a scrape of a busy process fit; a client that dawdles, or
// never says anything, is cut off.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// pageGrace is how long open requests may take to end once everything else has stopped.
const pageGrace = 500 * time.Millisecond

// serve serves the shell's pages, and profiles where an address for them is set, until clean-up. The pages are the
// first thing acquired and so the last given back: a stopping process still answers.
func (sh *Shell) serve(s HTTPSettings) (err error) {
	sh.routes()
	if sh.addr, err = sh.serveAt("http", s.Listen, sh.mux); err != nil || s.PProf == "" {
		return err
	}
	sh.profiles, err = sh.serveAt("pprof", s.PProf, profiles())
	return err
}

// serveAt serves a handler at an address and returns the one that it has.
func (sh *Shell) serveAt(name, address string, handler http.Handler) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(sh.Context(), "tcp", address)
	if err != nil {
		return "", listenError(address, err)
	}
	address = listener.Addr().String()
	server := &http.Server{
		Handler: handler,
		// A page that streams ends with the process.
		BaseContext:       func(net.Listener) context.Context { return sh.Context() },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: stdlog.New(errorLog{sh.Log}, "", 0),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			sh.group.abort(fmt.Errorf("serving %s at %s: %w", name, address, err))
		}
	}()
	sh.OnStop(name, func(ctx context.Context) error {
		defer func() { <-served }()
		ctx, cancel := context.WithTimeout(ctx, pageGrace)
		defer cancel()
		if server.Shutdown(ctx) == nil {
			return nil
		}
		return server.Close() // Cutting off a page that does not end is no failure of the process.
	})
	sh.Log.Info().Str("address", address).Msg("serving " + name)
	return address, nil
}

// routes mounts the pages that every process has.
func (sh *Shell) routes() {
	build := ReadBuild(sh.Name)
	sh.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	sh.mux.HandleFunc("GET /readyz", sh.readyz)
	sh.mux.Handle("GET /metrics", promhttp.HandlerFor(sh.Registry,
		promhttp.HandlerOpts{Registry: sh.Registry, EnableOpenMetrics: true})) // for exemplars
	sh.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(build) // The client may have gone; nothing is lost with it.
	})
}

// profiles are on no port that anything else is on: whatever hands a process's pages on hands no profiles on.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// readyz answers 200 if every condition holds, otherwise 503 with a line for each that does not. Notes follow.
func (sh *Shell) readyz(w http.ResponseWriter, _ *http.Request) {
	verdicts, ready := sh.ready.verdicts()
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	var text strings.Builder
	for _, v := range verdicts {
		if v.Reason != "" {
			fmt.Fprintf(&text, "%s: %s\n", v.Name, v.Reason)
		}
	}
	if ready {
		text.WriteString("ok\n")
	}
	for _, v := range verdicts {
		if v.Note != "" {
			fmt.Fprintf(&text, "note: %s: %s\n", v.Name, v.Note)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text.String())) // The client may have gone; nothing is lost with it.
}

// listenError describes in one line why an address could not be had.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: address already in use (stop the process that has it, or set http.listen)",
			address)
	}
	if inner, ok := errors.AsType[*net.OpError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("listening on %s: %w (set http.listen)", address, err)
}

// errorLog takes what net/http has to say, such as a panic in a handler.
type errorLog struct{ log zerolog.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	l.log.Warn().Str("detail", strings.TrimSpace(string(line))).Msg("http")
	return len(line), nil
}
