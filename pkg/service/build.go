package service

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// version and revision are set at link time, where the toolchain finds no repository, as in an image's build:
// -ldflags "-X perpkeeper/pkg/service.version=v1.2.3 -X perpkeeper/pkg/service.revision=4670f3e".
var version, revision string

// Build is which program is running.
type Build struct {
	Service  string `json:"service"`
	Version  string `json:"version"`            // the release, or "devel"
	Revision string `json:"revision,omitempty"` // of the source; unknown outside a repository
	Modified bool   `json:"modified,omitempty"` // the source had changes beyond Revision
	Time     string `json:"time,omitempty"`     // of Revision
	Go       string `json:"go"`
}

// ReadBuild reads what the linker and the toolchain have put into the binary.
func ReadBuild(service string) Build {
	b := Build{Service: service, Version: version, Revision: revision}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if b.Version == "" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = cmp.Or(revision, s.Value)
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is one line for people.
func (b Build) String() string {
	s := fmt.Sprintf("%s %s", b.Service, b.Version)
	if b.Revision != "" {
		s += " " + b.Revision
	}
	if b.Modified {
		s += " (modified)"
	}
	return s + " " + b.Go
}
