package evm

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/evm/agreement"
)

func suggests(price string) script {
	return func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
		return price, nil, method == methodGasPrice
	}
}

// The price is that of the host in the middle, of two the lower; of one alone, where there are two, at most twice what
// was agreed on before.
func TestGasPriceIsTheMiddle(t *testing.T) {
	down := refuse(&fault{status: -1}, methodGasPrice)
	for name, c := range map[string]struct {
		said []script
		want uint64
	}{
		"one too high":        {[]script{suggests("0x3e8"), suggests("0xa"), suggests("0xb")}, 11},
		"one too low":         {[]script{suggests("0x0"), suggests("0xa"), suggests("0xb")}, 10},
		"one of two too high": {[]script{suggests("0x3e8"), suggests("0xa")}, 10},
		"the only one":        {[]script{suggests("0x3e8")}, 1000},
		"the other is away":   {[]script{suggests("0xf"), down}, 15},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(len(c.said), 50)
				for i, n := range nodes {
					n.inject(c.said[i])
				}
				client, _ := dialFakes(t, nil, nodes...)
				if got, err := client.GasPrice(t.Context()); err != nil || got != c.want {
					t.Errorf("%d, %v", got, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		nodes[0].inject(suggests("0xa"))
		nodes[1].inject(suggests("0xb"))
		client, _ := dialFakes(t, nil, nodes...)
		if got, err := client.GasPrice(t.Context()); err != nil || got != 10 {
			t.Errorf("%d, %v", got, err)
		}
		nodes[0].inject(suggests("0x3e8"))
		nodes[1].inject(down)
		if got, err := client.GasPrice(t.Context()); err != nil || got != 20 {
			t.Errorf("%d, %v while the other is away", got, err)
		}
	})
}

// What one host says alone of what gas was paid, where there are two, is at most twice what two agreed on: on that, or
// on the price while they never did.
func TestTipsOfOneAloneAreBounded(t *testing.T) {
	pays := func(tip string) script {
		return func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
			switch method {
			case methodGasPrice:
				return "0xa", nil, true
			case methodTips:
				return map[string]any{"reward": [][]string{{tip, tip}}}, nil, true
			}
			return nil, nil, false
		}
	}
	shares := []uint64{60, 90}
	mustBe := func(t *testing.T, client *Client, want uint64) {
		t.Helper()
		got, err := client.Tips(t.Context(), 1, shares)
		if err != nil || !reflect.DeepEqual(got, [][]uint64{{want, want}}) {
			t.Errorf("%v, %v; want %d", got, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		client, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(pays("0x3e8"))
		nodes[1].inject(suggests("0xa")) // it keeps no history
		mustBe(t, client, 1000)          // nothing is known yet
		if _, err := client.GasPrice(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustBe(t, client, 20)
		nodes[0].inject(pays("0x64"))
		nodes[1].inject(pays("0x65"))
		mustBe(t, client, 100)
		nodes[0].inject(pays("0x3e8"))
		nodes[1].inject(suggests("0xa"))
		mustBe(t, client, 200)
	})
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 50)
		client, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(pays("0x3e8"))
		if _, err := client.GasPrice(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustBe(t, client, 1000)
	})
}

// Who wants to know what to pay waits for a host that hangs no longer than for one that is not called slow, and for
// such a one it does wait.
func TestPricesWaitForNoHungHost(t *testing.T) {
	for name, c := range map[string]struct {
		other script
		want  uint64
		most  time.Duration
	}{
		"hangs":   {hang(methodGasPrice), 1000, DefaultConfig().SlowAfter},
		"is late": {delay(time.Second, methodGasPrice), fakeChainID, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(2, 50)
				nodes[0].inject(suggests("0x3e8"))
				nodes[1].inject(c.other)
				client, _ := dialFakes(t, nil, nodes...)
				begun := time.Now()
				got, err := client.GasPrice(t.Context())
				if took := time.Since(begun); err != nil || got != c.want || took != c.most {
					t.Errorf("%d, %v after %s; want %d after %s", got, err, took, c.want, c.most)
				}
			})
		})
	}
}

// Each share is taken from the host in the middle for it, as far back as all that are taken reach.
func TestTipsOfTheMiddle(t *testing.T) {
	history := func(host string, blocks ...[]uint64) agreement.Answer[[][]uint64] {
		return agreement.Answer[[][]uint64]{From: host, Host: host, Value: blocks}
	}
	for name, c := range map[string]struct {
		said []agreement.Answer[[][]uint64]
		want [][]uint64
	}{
		"one too high": {[]agreement.Answer[[][]uint64]{
			history("a", []uint64{900, 900}, []uint64{900, 900}), history("b", []uint64{1, 5}, []uint64{2, 6}),
			history("c", []uint64{1, 7}, []uint64{3, 8}),
		}, [][]uint64{{1, 7}, {3, 8}}},
		"one has none": {[]agreement.Answer[[][]uint64]{history("a"), history("b", []uint64{1, 5}),
			history("c", []uint64{2, 4})}, [][]uint64{{1, 4}}},
		"one is short": {[]agreement.Answer[[][]uint64]{history("a", []uint64{1, 9}, []uint64{2, 9}),
			history("b", []uint64{8, 3})}, [][]uint64{{2, 3}}},
		"none has any": {[]agreement.Answer[[][]uint64]{history("a"), history("b")}, nil},
	} {
		if got := middleTips(c.said, []uint64{60, 90}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
