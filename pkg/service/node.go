package service

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"
)

// nodeTimeout bounds the question for a container's name: it is a label for people, and nothing waits for it.
const nodeTimeout = time.Second

// containerID is what a container engine gives a container for a host name, unless it is told otherwise.
var containerID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// Node names this process in leases, claims and logs, for people (NON-12). In a container it is the container's name
// (keeper-tokyo-sender-2), which the one that replaces it has as well, and which the engine's name server tells;
// elsewhere host name and process id.
func Node(ctx context.Context) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if containerID.MatchString(host) {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
		defer cancel()
		if name := containerName(ctx, host, net.DefaultResolver); name != "" {
			return name
		}
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// resolver is what is asked of a name server.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, address string) ([]string, error)
}

// containerName is the first part of the name that an address of this host is known by on the engine's network, or
// empty.
func containerName(ctx context.Context, host string, names resolver) string {
	addresses, err := names.LookupHost(ctx, host)
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		known, err := names.LookupAddr(ctx, address)
		if err != nil {
			continue
		}
		for _, name := range known {
			if first, _, _ := strings.Cut(name, "."); first != "" && first != host && first != "localhost" {
				return first
			}
		}
	}
	return ""
}
