package scanner

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/chain"
)

// An endpoint that shows a transaction with our logs as somebody else's changes nothing: its signature says who sent
// it. What leaves no log is not recorded, whoever sent it.
func TestForgedSenders(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	forger := startLiar(t, d)
	d.mine(1)
	s := start(t, through(testConfig(d, k.Addr()), forger), k)
	settle(t, k, tr)
	sender := []byte(`"from":"` + strings.ToLower(d.account(0).Hex()))
	forger.tell("eth_getBlockByHash", func(_ []json.RawMessage, said json.RawMessage) json.RawMessage {
		return bytes.ReplaceAll(said, sender, []byte(`"from":"`+chain.Address{0xba}.Hex()))
	})
	d.trade(1)
	published(t, s, d)
	settle(t, k, tr)
}

// A block whose bloom excludes us is read by its header alone.
func TestEmptyBlocksAreHeaders(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	var bodies atomic.Int64
	count := func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if string(params[1]) == "true" {
			bodies.Add(1)
		}
		return nil
	}
	node.tell("eth_getBlockByHash", count)
	node.tell("eth_getBlockByNumber", count)
	d.mine(5)
	d.send(2, chain.Address{0xdd}, nil)
	d.mine(1)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	published(t, s, d)
	settle(t, k, tr)
	if n := bodies.Load(); n > 0 {
		t.Errorf("%d bodies were read", n)
	}
	d.trade(1)
	published(t, s, d)
	settle(t, k, tr)
	if bodies.Load() == 0 {
		t.Error("no body was read of blocks with logs")
	}
}
