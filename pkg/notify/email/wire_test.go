package email

import (
	"errors"
	"testing"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/transport"
	"perpkeeper/pkg/transport/transporttest"
)

// A mail server that takes every byte and says nothing, or lets nobody in, has not refused the message, and holds
// nobody up for longer than five seconds.
func TestMuteAndRefusingServers(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*transporttest.Relay){
		"mute":     func(r *transporttest.Relay) { r.Mute(true) },
		"refusing": func(r *transporttest.Relay) { r.Refuse(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newServer(t)
			relay := transporttest.NewRelay(t, s.Addr().String())
			fault(relay)
			c := Config{Name: "box", Server: relay.Addr(), TLS: none, From: "a@example.org",
				To: []string{"b@example.org"}}
			begun := time.Now()
			err := c.Open(transport.Mute).Notify(t.Context(), message)
			_, refused := errors.AsType[*notify.RefusedError](err)
			if took := time.Since(begun); err == nil || refused || took > transporttest.Patience {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
}
