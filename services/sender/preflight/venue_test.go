package preflight

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/txmgr/txmanager"
)

// rolesChain is an exchange with one handler of orders, whose RoleStore answers every question for a role alike.
type rolesChain struct {
	granted atomic.Bool
	looks   atomic.Int64
}

func (c *rolesChain) Finalized(context.Context) (chain.BlockRef, error) {
	c.looks.Add(1)
	return chain.BlockRef{}, nil
}

func (c *rolesChain) Settled(chain.Hash) *rolesChain { return c }

func (c *rolesChain) Code(context.Context, chain.Address) ([]byte, error) {
	_, data, err := venueOf(job.Order).Venue().Call(job.Job{Kind: job.Order}, gmx.SetPrices{})
	return data[:4], err
}

func (c *rolesChain) Ask(_ context.Context, _ chain.Address, data []byte) ([]byte, bool, error) {
	word := func(b byte) []byte { return append(make([]byte, 31), b) }
	asks := func(getter string) bool {
		selector := chain.Keccak256([]byte(getter))
		return [4]byte(data[:4]) == [4]byte(selector[:4])
	}
	switch {
	case asks("roleStore()"), asks("getRoleMemberCount(bytes32)"):
		return word(1), true, nil
	case asks("getRoleMembers(bytes32,uint256,uint256)"):
		return append(append(word(32), word(1)...), word(7)...), true, nil
	case asks("hasRole(address,bytes32)") && c.granted.Load():
		return word(1), true, nil
	case asks("hasRole(address,bytes32)"):
		return word(0), true, nil
	}
	return []byte{0xa3, 0x5b, 0x15, 0x0b}, false, nil
}

// A role that was taken from the signer holds its jobs back before anything is asked or sent, and they go on when it is
// given back. A call that is refused for want of a role decides nothing about the job: the venue is looked at again at
// once.
func TestJobsWaitForRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &rolesChain{}
		c.granted.Store(true)
		f := gmx.Follow(chain.Address{0xd5}, []chain.Address{{9}}, c, zerolog.Nop())
		if err := f.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		r := &Checker{from: chain.Address{9}, venue: f, gas: reckoned(), lags: new(lags), Parts: Parts{
			Head: horizonAt(90_000, time.Now()), Quotes: quotesOf(reportAt(weth, 90_000))}}
		j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}
		prepared := func() (call txmanager.Call, v txmanager.Verdict) {
			var reports []price.Report
			call, reports, v = r.prepare(j, terms{}, 0)
			if len(reports) != 1 {
				t.Errorf("chosen reports: %v", reports)
			}
			return call, v
		}
		if call, v := prepared(); v.Kind != txmanager.Proceed || call.To.IsZero() {
			t.Fatalf("with its role: %+v", v)
		}
		c.granted.Store(false)
		refused := errNode{revertWith("Unauthorized(address,string)")}
		o, err := r.simulate(t.Context(), refused, j, txmanager.Call{})
		if err != nil || o.verdict.Kind != txmanager.Defer {
			t.Errorf("a call that is refused for want of a role: %+v, %v", o.verdict, err)
		}
		before := c.looks.Load()
		time.Sleep(time.Second)
		if synctest.Wait(); c.looks.Load() == before {
			t.Error("the venue is not looked at again")
		}
		if call, v := prepared(); v.Kind != txmanager.Defer || !strings.Contains(v.Reason, "ORDER_KEEPER") ||
			!call.To.IsZero() {
			t.Errorf("without its role: %+v", v)
		}
		c.granted.Store(true)
		time.Sleep(time.Minute)
		if _, v := prepared(); v.Kind != txmanager.Proceed {
			t.Errorf("with its role again: %+v", v)
		}
		stop()
		<-done
	})
}
