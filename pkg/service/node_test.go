package service

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// nameServer answers like that of a container engine.
type nameServer map[string][]string

func (n nameServer) LookupHost(_ context.Context, host string) ([]string, error) { return n.ask(host) }
func (n nameServer) LookupAddr(_ context.Context, at string) ([]string, error)   { return n.ask(at) }

func (n nameServer) ask(what string) ([]string, error) {
	if answer, known := n[what]; known {
		return answer, nil
	}
	return nil, errors.New("no such name")
}

// NON-12: a container is known by its name, which the next one in its place has as well, and not by its id.
func TestContainersAreKnownByTheirNames(t *testing.T) {
	const host = "0123456789ab"
	for name, c := range map[string]struct {
		names nameServer
		want  string
	}{
		"on a network": {nameServer{host: {"172.18.0.7"},
			"172.18.0.7": {"keeper-tokyo-sender-2.keeper-tokyo_keeper."}}, "keeper-tokyo-sender-2"},
		"on two networks": {nameServer{host: {"10.0.0.1", "172.18.0.7"},
			"172.18.0.7": {host + ".", "keeper1-sender-1.keeper1_keeper."}}, "keeper1-sender-1"},
		"by its id alone": {nameServer{host: {"172.18.0.7"}, "172.18.0.7": {host + "."}}, ""},
		"not at all":      {nameServer{}, ""},
	} {
		if got := containerName(t.Context(), host, c.names); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if node := Node(t.Context()); node == "" || strings.ContainsAny(node, " \n") {
		t.Errorf("this process is %q", node)
	}
}
