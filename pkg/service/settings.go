package service

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
)

// LogSettings is the [log] section of every process.
type LogSettings struct {
	Level  string `toml:"level" help:"least severe level to log: trace, debug, info, warn, error"`
	Format string `toml:"format" help:"json, console, or auto: console on a terminal, json elsewhere"`
}

// Validate refuses levels and formats that do not exist.
func (s LogSettings) Validate() error {
	return errors.Join(
		oneOf("level", s.Level, "trace", "debug", "info", "warn", "error"),
		oneOf("format", s.Format, "json", "console", "auto"),
	)
}

// level is what zerolog calls the level; Validate has checked the name.
func (s LogSettings) level() zerolog.Level {
	level, _ := zerolog.ParseLevel(s.Level)
	return level
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not known (use one of %s)", key, value, strings.Join(allowed, ", "))
}

// HTTPSettings is the [http] section of every service.
type HTTPSettings struct {
	Listen string `toml:"listen" help:"address for health, metrics and status pages; port 0 takes a free one"`
	PProf  string `toml:"pprof" help:"address of its own for /debug/pprof/, such as 127.0.0.1:6060; empty = none. Who reaches it can read the process's memory"`
}

// Validate refuses what cannot be an address.
func (s HTTPSettings) Validate() error {
	err := checkAddress("listen", s.Listen)
	if s.PProf != "" {
		err = errors.Join(err, checkAddress("pprof", s.PProf))
	}
	return err
}

func checkAddress(key, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is not an address (write host:port, such as 0.0.0.0:8080)", key, address)
	}
	return nil
}

// toolSettings are the sections the shell owns in every process.
type toolSettings struct {
	Log LogSettings `toml:"log"`
}

// serviceSettings are the sections the shell owns in a service.
type serviceSettings struct {
	Log  LogSettings  `toml:"log"`
	HTTP HTTPSettings `toml:"http"`
}
