package gmx

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// fakeVenue is a chain with an exchange on it: contracts answer by their functions, refuse a function that they know
// for want of a role, and revert without a word at any other.
type fakeVenue struct {
	mutex     sync.Mutex
	contracts map[chain.Address]map[[4]byte][]byte
	roles     map[string][]chain.Address
	asked     int
	height    uint64
	away      error
}

var (
	venueStore = chain.Address{0xd5}
	venueRoles = chain.Address{0x40}
)

func newFakeVenue() *fakeVenue {
	return &fakeVenue{roles: map[string][]chain.Address{}, contracts: map[chain.Address]map[[4]byte][]byte{
		venueStore: {getRoleStore: answer(venueRoles)}, venueRoles: {},
		{0x0e}: {getRoleStore: answer(venueRoles)}, // a vault
	}}
}

// handler adds a contract that executes kinds of job, and grants it its role.
func (v *fakeVenue) handler(at, emitter chain.Address, more map[[4]byte][]byte, kinds ...job.Kind) {
	m := map[[4]byte][]byte{getDataStore: answer(venueStore), getEventEmitter: answer(emitter),
		getOracle: answer(chain.Address{0x0a})}
	maps.Copy(m, more)
	for _, kind := range kinds {
		m[selectors[kind]] = nil
	}
	v.mutex.Lock()
	v.contracts[at] = m
	v.mutex.Unlock()
	v.grant(controllerRole, at)
}

func (v *fakeVenue) grant(role string, to ...chain.Address) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.roles[role] = append(v.roles[role], to...)
}

// revoke takes a role as the original does: the last of the list comes to stand in the gap.
func (v *fakeVenue) revoke(role string, from chain.Address) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	list := v.roles[role]
	at := slices.Index(list, from)
	list[at] = list[len(list)-1]
	v.roles[role] = list[:len(list)-1]
}

func (v *fakeVenue) Ask(_ context.Context, to chain.Address, data []byte) ([]byte, bool, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.asked++
	if v.away != nil {
		return nil, false, v.away
	}
	w := walker{data: data[4:]}
	if to == venueRoles {
		for name, holders := range v.roles {
			role := perp.BaseKey(name)
			switch {
			case [4]byte(data[:4]) == getMemberCount && w.word(0) == role:
				return appendNumber(nil, len(holders)), true, nil
			case [4]byte(data[:4]) == getMembers && w.word(0) == role:
				return members(holders...), true, nil
			case [4]byte(data[:4]) == getHasRole && w.word(32) == role:
				word := perp.BoolWord(slices.Contains(holders, w.address(0)))
				return word[:], true, nil
			}
		}
		return make([]byte, 32), true, nil
	}
	output, known := v.contracts[to][[4]byte(data[:4])]
	if !known || output == nil && v.contracts[to] == nil {
		return nil, false, nil
	}
	if output == nil {
		return []byte{0xa3, 0x5b, 0x15, 0x0b}, false, nil
	}
	return output, true, nil
}

func (v *fakeVenue) Code(_ context.Context, contract chain.Address) (code []byte, err error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.asked++
	for name := range v.contracts[contract] {
		code = append(append(code, 0x63), name[:]...)
	}
	return code, v.away
}

func (v *fakeVenue) Finalized(context.Context) (chain.BlockRef, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.height++
	return chain.BlockRef{Number: v.height}, nil
}

// looks counts how often somebody asked for the final block.
func (v *fakeVenue) looks() uint64 {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.height
}

// leave has nobody answer any more.
func (v *fakeVenue) leave(why error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.away = why
}

func (v *fakeVenue) Settled(chain.Hash) *fakeVenue { return v }

func answer(a chain.Address) []byte { h := a.Hash(); return h[:] }

func members(all ...chain.Address) (list []byte) {
	list = appendNumber(appendNumber(nil, 32), len(all))
	for _, a := range all {
		list = append(list, answer(a)...)
	}
	return list
}

// Every contract that holds the role and executes something is found, each under what it executes, whatever else holds
// the role: people, vaults, and more of them than a byte counts.
func TestFindFromTheDataStore(t *testing.T) {
	v, emitter := newFakeVenue(), chain.Address{0xee}
	for i := range 300 {
		v.grant(controllerRole, chain.Address{0xff, byte(i >> 8), byte(i)})
	}
	v.grant(controllerRole, chain.Address{0x0e})
	order, adl := chain.Address{1}, chain.Address{2}
	v.handler(order, emitter, nil, job.Order)
	v.handler(adl, emitter, nil, job.Adl, job.AdlState)
	v.grant(orderRole, chain.Address{9})
	var f Finder
	found, err := f.Find(t.Context(), v, venueStore, []chain.Address{{9}})
	if err != nil || len(found.Handlers) != 2 || found.RoleStore != venueRoles {
		t.Fatalf("found %+v, %v", found, err)
	}
	for kind, want := range map[job.Kind]chain.Address{job.Order: order, job.Adl: adl, job.AdlState: adl} {
		if h, is := found.Handler(kind); !is || h.Address != want || h.EventEmitter != emitter {
			t.Errorf("%s is executed by %+v, want %s", kind, h, want)
		}
	}
	if err := found.Demand(job.Order, job.Deposit); err == nil {
		t.Error("a venue that executes no deposits has all that is needed")
	}
	if lacks := found.Lacks(chain.Address{9}, job.Job{Kind: job.Liquidation}); lacks != liquidationRole {
		t.Errorf("the signer lacks %q", lacks)
	}
	if lacks := found.Lacks(chain.Address{9}, job.Job{Kind: job.Deposit}); lacks != "" {
		t.Errorf("the signer lacks %q for a deposit", lacks)
	}
	if _, err := f.Find(t.Context(), v, chain.Address{0x77}, nil); err == nil {
		t.Error("an address with nothing is taken for a DataStore")
	}
}

// Of two handlers of a kind the newest is called: the newer version, then the one that came later, wherever the
// RoleStore has put it since.
func TestNewestHandlerIsCalled(t *testing.T) {
	v, emitter := newFakeVenue(), chain.Address{0xee}
	first, old, other, young := chain.Address{1}, chain.Address{2}, chain.Address{3}, chain.Address{4}
	v.handler(first, emitter, nil, job.Shift)
	v.handler(old, emitter, nil, job.Order)
	v.handler(other, emitter, nil, job.Deposit)
	var f Finder
	called := func() chain.Address {
		t.Helper()
		found, err := f.Find(t.Context(), v, venueStore, nil)
		h, is := found.Handler(job.Order)
		if err != nil || !is {
			t.Fatal(found, err)
		}
		return h.Address
	}
	if got := called(); got != old {
		t.Fatalf("the only one is not called: %s", got)
	}
	v.handler(young, emitter, nil, job.Order)
	v.revoke(controllerRole, first) // the newest stands first in the list from now on
	asked := v.asked
	if got := called(); got != young {
		t.Errorf("of the same version %s is called, want the one that came later", got)
	}
	if again := v.asked; again-asked > 8 {
		t.Errorf("a second look at a venue with one new handler asked %d times", again-asked)
	}
	v.revoke(controllerRole, young)
	if got := called(); got != old {
		t.Errorf("one that has lost its role is called: %s", got)
	}
	v.handler(chain.Address{5}, emitter, map[[4]byte][]byte{{0xee, 0x3a, 0xbe, 0x87}: nil}, job.Order)
	v.handler(chain.Address{6}, emitter, nil, job.Order)
	if got := called(); got != (chain.Address{5}) {
		t.Errorf("%s is called, want the one of the newer version", got)
	}
}

// A follower takes a new handler into use, leaves one that has lost its role, and says which roles were taken from
// signers, within a minute; told that something has changed, within seconds. While nobody answers all stays as it was.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, signer := newFakeVenue(), chain.Address{9}
		old, young := chain.Address{1}, chain.Address{2}
		v.handler(old, chain.Address{0xee}, nil, job.Order)
		v.grant(orderRole, signer)
		f := Follow(venueStore, []chain.Address{signer}, v, zerolog.Nop())
		if f.Healthy() == nil {
			t.Error("a venue that nobody has looked at is healthy")
		}
		if err := f.Look(t.Context()); err != nil || f.Healthy(job.Order) != nil {
			t.Fatal(err, f.Healthy(job.Order))
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		is := func(want chain.Address, what string) {
			t.Helper()
			synctest.Wait()
			if h, _ := f.Venue().Handler(job.Order); h.Address != want {
				t.Errorf("%s: %s is called, want %s", what, h.Address, want)
			}
		}

		v.handler(young, chain.Address{0xef}, nil, job.Order)
		time.Sleep(time.Minute)
		is(young, "a minute after it came")
		if all := f.EventEmitters(); len(all) != 2 {
			t.Errorf("events are recorded of %v", all)
		}

		v.revoke(controllerRole, young)
		time.Sleep(20 * time.Second)
		f.Changed()
		time.Sleep(time.Second)
		is(old, "a second after its role was seen to be gone")
		looks := v.looks()
		for range 100 {
			f.Changed()
		}
		time.Sleep(5 * time.Second)
		if more := v.looks() - looks; more > 6 {
			t.Errorf("%d looks in five seconds", more)
		}
		if all := f.EventEmitters(); len(all) != 2 {
			t.Errorf("events of the handler that was left are not read any more: %v", all)
		}

		v.revoke(orderRole, signer)
		time.Sleep(time.Minute + time.Second)
		order := job.Job{Kind: job.Order}
		if synctest.Wait(); f.Healthy() == nil || f.Lacks(signer, order) == "" || f.Lacks(signer, order) == "" {
			t.Error("nobody is told that a role was taken")
		}
		v.grant(orderRole, signer)
		time.Sleep(time.Minute + time.Second)
		if synctest.Wait(); f.Healthy() != nil || f.Lacks(signer, order) != "" {
			t.Errorf("a role that was given back: %v", f.Healthy())
		}
		if role := f.Lacks(signer, job.Job{Kind: job.Adl}); role != adlRole || f.Healthy() == nil {
			t.Error("a role that was never there is not missed when a job needs it")
		}
		v.grant(adlRole, signer)
		time.Sleep(time.Minute + time.Second)
		frozen := job.Job{Kind: job.Order, Frozen: true}
		if synctest.Wait(); f.Healthy() != nil || f.Lacks(signer, frozen) != frozenRole || f.Healthy() == nil {
			t.Error("the role of frozen orders, gone before the start, is not missed when one needs it")
		}
		v.grant(frozenRole, signer)
		time.Sleep(time.Minute + time.Second)
		if synctest.Wait(); f.Healthy() != nil || f.Lacks(signer, frozen) != "" {
			t.Errorf("the role of frozen orders is there: %v", f.Healthy())
		}
		v.revoke(frozenRole, signer)
		time.Sleep(time.Minute + time.Second)
		if synctest.Wait(); f.Healthy() == nil {
			t.Error("nobody is told that the role of frozen orders was taken")
		}

		v.leave(errors.New("away"))
		time.Sleep(2 * time.Minute)
		is(old, "while nobody answers")
		time.Sleep(2 * time.Minute)
		if synctest.Wait(); f.Healthy() == nil {
			t.Error("a venue that cannot be read is healthy for ever")
		}
		stop()
		<-done
	})
}
