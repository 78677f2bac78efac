package evm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/setting/secret"
)

// A private transaction goes to the private endpoints and to no other; a public one never to them. Nothing is read from
// them.
func TestSendPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(4, 50)
		c, _ := dialFakes(t, func(cfg *Config) { cfg.URLs, cfg.PrivateURLs = cfg.URLs[:2], cfg.URLs[2:] }, nodes...)
		for name, tt := range map[string]struct {
			send func() error
			to   [4]int
		}{
			"private": {func() error { return c.SendPrivate(t.Context(), []byte{1}, 0) }, [4]int{0, 0, 1, 1}},
			"public":  {func() error { return c.SendRaw(t.Context(), []byte{2}) }, [4]int{1, 1, 0, 0}},
		} {
			var before, got [4]int
			for i, n := range nodes {
				before[i] = n.count(methodSend)
			}
			if err := tt.send(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait() // the others go on being asked
			for i, n := range nodes {
				got[i] = n.count(methodSend) - before[i]
			}
			if got != tt.to {
				t.Errorf("%s: sent to %v, want %v", name, got, tt.to)
			}
		}
		for range 10 {
			if _, err := c.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * c.pool.cfg.ProbeInterval)
		if n := nodes[2].count(methodBlockAt) + nodes[3].count(methodBlockAt); n > 0 {
			t.Errorf("a private endpoint was read from %d times", n)
		}
	})
}

// A relay may serve nothing but transactions; one that names another chain is not used all the same.
func TestRelaysThatNameNoChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		nodes[1].inject(refuse(refusal(-32601, "method not found"), methodChainID, methodBlockAt))
		c, _ := dialFakes(t, func(cfg *Config) { cfg.URLs, cfg.PrivateURLs = cfg.URLs[:1], cfg.URLs[1:] }, nodes...)
		if err := c.SendPrivate(t.Context(), []byte{1}, 0); err != nil || nodes[1].count(methodSend) != 1 {
			t.Errorf("%v; sent %d times", err, nodes[1].count(methodSend))
		}
		nodes[1].inject(nil)
		nodes[1].chainID = 97
		c.pool.private[0].drop(c.pool.private[0].conn)
		if err := c.SendPrivate(t.Context(), []byte{2}, 0); err == nil || nodes[1].count(methodSend) != 1 {
			t.Errorf("%v; sent to another chain", err)
		}
	})
}

func TestSendPrivateNeedsAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 50)
		c, _ := dialFakes(t, nil, nodes...)
		err := c.SendPrivate(t.Context(), []byte{1}, 0)
		if err == nil || !strings.Contains(err.Error(), "chain.private_urls") || nodes[0].count(methodSend) > 0 {
			t.Errorf("%v; sent %d times", err, nodes[0].count(methodSend))
		}
	})
}

// Neither logs, errors nor the status page show a secret, and look-alike endpoints are told apart.
func TestEndpointsHideSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const token = "0a1b2c3d4e5f60718293"
		nodes, _ := fakes(1, 50)
		var log bytes.Buffer
		transport, cfg := newFakeNet(t, nodes...)
		cfg.URLs = []secret.URL{secret.MustURL("http://a/v3/" + token), secret.MustURL("http://a/v4/" + token)}
		c, err := dial(t.Context(), fakeChainID, cfg, zerolog.New(&log), newMetricsForTest(), transport)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.pool.public[0].distrust(ForReceipts, ReasonSuspected, "it said "+token)
		nodes[0].inject(refuse(refusal(-32000, "no project "+token), methodGasPrice))
		_, err = c.Reader.GasPrice(t.Context())
		status := c.Endpoints()
		shown := fmt.Sprintf("%+v %v %s", status, err, log.String())
		if strings.Contains(shown, token) {
			t.Errorf("the token shows: %s", shown)
		}
		if status[0].Source != "http://a/***" || status[1].Source != "http://a/*** #2" ||
			status[0].Excluded[0].Detail != "it said ***" {
			t.Errorf("%+v", status)
		}
	})
}
