package evm

import (
	"net"
	"net/url"
	"strings"

	"perpkeeper/pkg/setting/secret"
)

// hostsOf names the machine or provider behind each address. Addresses of one name have one word together, whatever
// their ports, paths and keys are: they lead to the same provider. Behind an IP address or localhost another port is
// another program, such as a tunnel or a second node; only where one HTTP and one WebSocket port are all there is, they
// are taken for the two doors of one node.
func hostsOf(urls []secret.URL) []string {
	hosts := make([]string, len(urls))
	doors := map[string][]int{} // by IP address
	for i, u := range urls {
		parsed, err := url.Parse(u.Reveal())
		if err != nil {
			hosts[i] = u.String()
			continue
		}
		hosts[i] = strings.ToLower(parsed.Hostname())
		if hosts[i] == "localhost" || hosts[i] == "::1" {
			hosts[i] = "127.0.0.1"
		}
		if net.ParseIP(hosts[i]) != nil {
			doors[hosts[i]] = append(doors[hosts[i]], i)
			hosts[i] = net.JoinHostPort(hosts[i], parsed.Port())
		}
	}
	for _, at := range doors {
		if len(at) == 2 && announces(urls[at[0]]) != announces(urls[at[1]]) {
			hosts[at[1]] = hosts[at[0]]
		}
	}
	return hosts
}
