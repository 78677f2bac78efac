package transport

import (
	"net/http"
	"time"
)

// HTTP makes a transport for requests of which an answer may take so long to begin. Over HTTP/1 a request that is given
// up closes its connection, and the idle ones with it; over HTTP/2 pings tell a dead connection from a slow answer.
func HTTP(longest time.Duration) *http.Transport {
	dialer := &Dialer{Patience: max(Mute, longest)}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: Mute, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: Mute / 2, PingTimeout: Mute / 2},
	}
}
