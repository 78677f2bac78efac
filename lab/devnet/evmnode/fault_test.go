package evmnode

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"go.uber.org/goleak"
)

func (c *chainTest) inject(t *testing.T, f Fault) {
	t.Helper()
	if err := c.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func TestFaultAnswersWithAnError(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	c.overBoth(t, func(t *testing.T, client *ethclient.Client) {
		c.inject(t, Fault{Method: "eth_blockNumber", Times: 2, Error: "limit exceeded"})
		for range 2 {
			_, err := client.BlockNumber(t.Context())
			var coded rpc.Error
			if !errors.As(err, &coded) || coded.ErrorCode() != -32000 || coded.Error() != "limit exceeded" {
				t.Errorf("got %v", err)
			}
			if _, err := client.ChainID(t.Context()); err != nil {
				t.Errorf("another method fails, too: %v", err)
			}
		}
		if _, err := client.BlockNumber(t.Context()); err != nil {
			t.Errorf("third request: %v", err)
		}
	})
}

func TestFaultStrikesBatches(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	c.overBoth(t, func(t *testing.T, client *ethclient.Client) {
		c.inject(t, Fault{Method: "eth_getLogs", Times: 1, Error: "no"})
		batch := []rpc.BatchElem{
			{Method: "eth_blockNumber", Result: new(any)},
			{Method: "eth_getLogs", Args: []any{map[string]any{}}, Result: new(any)},
		}
		if err := client.Client().BatchCallContext(t.Context(), batch); err != nil || batch[0].Error == nil ||
			batch[1].Error == nil {
			t.Errorf("%v, %v, %v", err, batch[0].Error, batch[1].Error)
		}
	})
}

// shortly bounds a request whose answer will be lost. go-ethereum's client needs it: over WebSocket it forgets a
// request whose connection ends between the writing and its own note of it, and then waits for ever.
func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestFaultDropsTheConnection(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	for _, url := range []string{c.HTTPURL(), c.WSURL()} {
		client := c.dial(url)
		c.inject(t, Fault{Times: 1, DropConnection: true})
		if _, err := client.BlockNumber(shortly(t)); err == nil {
			t.Errorf("%s: answered", url)
		}
	}
	c.mine(1)
}

// The sender's worst case: the node has the transaction, the client does not know.
func TestFaultDropsTheReply(t *testing.T) {
	c := start(t, Config{Manual: true}, 2)
	for i, url := range []string{c.HTTPURL(), c.WSURL()} {
		client := c.dial(url)
		c.inject(t, Fault{Method: "eth_sendRawTransaction", Times: 1, DropReply: true})
		tx := c.sign(i, 0, 10, &emitter, []byte{1})
		if err := client.SendTransaction(shortly(t), tx); err == nil {
			t.Errorf("%s: answered", url)
		}
		eventually(t, "transaction in the pool", func() bool {
			_, pending, err := c.http.TransactionByHash(t.Context(), tx.Hash())
			return err == nil && pending
		})
	}
}

func TestFaultDelaysOnlyItsRequest(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	c.inject(t, Fault{Method: "eth_chainId", Times: 1, DelayMS: 300})
	slow := make(chan time.Time)
	sent := time.Now()
	go func() {
		if _, err := c.ws.ChainID(t.Context()); err != nil {
			t.Errorf("delayed request: %v", err)
		}
		slow <- time.Now()
	}()
	eventually(t, "fault used", func() bool {
		c.faults.mu.Lock()
		defer c.faults.mu.Unlock()
		return len(c.faults.armed) == 0
	})
	if _, err := c.ws.BlockNumber(t.Context()); err != nil {
		t.Fatal(err)
	}
	quick := time.Now()
	answered := receive(t, "delayed answer", slow)
	if answered.Sub(sent) < 300*time.Millisecond {
		t.Errorf("answered after %s", answered.Sub(sent))
	}
	if quick.After(answered) {
		t.Error("a later request on the connection had to wait")
	}
}

func TestDropConnectionsEndsSubscriptions(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	sub, err := c.ws.SubscribeNewHead(t.Context(), make(chan *types.Header, 1))
	if err != nil {
		t.Fatal(err)
	}
	c.DropConnections()
	receive(t, "end of the subscription", sub.Err())
	if _, err := c.ws.ChainID(shortly(t)); err != nil {
		t.Errorf("the client could not connect again: %v", err)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("node", func(t *testing.T) {
		c := start(t, Config{BlockTime: minBlockTime}, 1)
		subscribed(t, c.ws.SubscribeNewHead)
		tx := c.emit(0, 1)
		eventually(t, "transaction mined", func() bool {
			_, err := c.http.TransactionReceipt(t.Context(), tx.Hash())
			return err == nil
		})
		c.inject(t, Fault{Method: "eth_chainId", Times: 1, DelayMS: 3_600_000})
		var answered sync.WaitGroup
		t.Cleanup(answered.Wait)
		answered.Go(func() { _, _ = c.ws.ChainID(t.Context()) }) // Still being delayed when the node stops.
	})
	goleak.VerifyNone(t, before)
}
