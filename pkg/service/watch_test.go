package service_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/service"
)

// A watched part makes the process not ready with its own words, and ready again when it recovers.
func TestWatch(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	address := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		options := service.Options{Name: "test", Log: zerolog.Nop(), HTTP: service.HTTPSettings{Listen: "127.0.0.1:0"}}
		ended <- service.Run(ctx, options, func(sh *service.Shell) error {
			sh.Watch("broker", func(context.Context) error {
				if broken.Load() {
					return errors.New("nobody listens at 127.0.0.1:9092")
				}
				return nil
			})
			address <- sh.Addr()
			return nil
		})
	}()
	url := "http://" + <-address + "/readyz"
	awaitPage(t, url, http.StatusServiceUnavailable, "broker: nobody listens at 127.0.0.1:9092")
	broken.Store(false)
	awaitPage(t, url, http.StatusOK, "")
	broken.Store(true)
	awaitPage(t, url, http.StatusServiceUnavailable, "broker: nobody listens at 127.0.0.1:9092")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("a stop asked for ended with %v", err)
	}
}

func awaitPage(t *testing.T, url string, status int, text string) {
	t.Helper()
	tick, hung := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		if answer, err := http.Get(url); err == nil {
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == status && strings.Contains(string(body), text) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-hung:
			t.Fatalf("%s never answered %d with %q", url, status, text)
		}
	}
}
