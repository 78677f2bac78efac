package txstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/lease"
)

// holding is a process that has a lease for a minute, and one that waits for it.
type holding struct {
	t       *testing.T
	address string
	signer  chain.Address
	owner   lease.Owner
	leases  txstore.Leases
	fence   lease.Fence
	heir    txstore.Leases
	next    lease.Owner
}

func newHolding(t *testing.T) *holding {
	t.Helper()
	h := &holding{t: t, address: pgtest.URL(t), owner: lease.NewOwner("holder"), next: lease.NewOwner("heir")}
	db := txstoretest.Open(t, h.address, "holder")
	h.leases, h.heir = txstore.NewLeases(db), txstore.NewLeases(txstoretest.Open(t, h.address, "heir"))
	h.signer = txstoretest.Register(t, db)
	var err error
	if h.fence, err = h.leases.Acquire(t.Context(), h.signer, h.owner, time.Minute); err != nil {
		t.Fatal(err)
	}
	return h
}

// attend gives the holder a session, until it is let go.
func (h *holding) attend() (leave func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = h.leases.Attend(ctx, h.owner) })
	h.t.Cleanup(func() { cancel(); running.Wait() })
	h.await("its session is known", `SELECT present = owner FROM keeper.signer_lease`)
	return func() { cancel(); running.Wait() }
}

// await waits for a condition of the database.
func (h *holding) await(what, sql string) {
	h.t.Helper()
	conn := connect(h.t, h.address)
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		var is *bool
		if err := conn.QueryRow(h.t.Context(), sql).Scan(&is); err != nil {
			h.t.Fatal(err)
		}
		if is != nil && *is {
			return
		}
	}
	h.t.Fatalf("never: %s", what)
}

// succeeds lets the heir ask as senders do, for a while, and tells when it got the lease.
func (h *holding) succeeds(atMost time.Duration) (f lease.Fence, after time.Duration, is bool) {
	h.t.Helper()
	for began := time.Now(); time.Since(began) < atMost; time.Sleep(lease.Rest(lease.DefaultTTL)) {
		f, err := h.heir.Acquire(h.t.Context(), h.signer, h.next, time.Minute)
		if err == nil {
			return f, time.Since(began), true
		}
		if !lease.Held(err) {
			h.t.Fatal(err)
		}
	}
	return f, 0, false
}

// mustStay demands that the heir waits, for much longer than a moment.
func (h *holding) mustStay() {
	h.t.Helper()
	if f, after, is := h.succeeds(3 * lease.Moment); is {
		h.t.Errorf("robbed after %s: %+v", after, f)
	}
	if err := h.leases.Renew(h.t.Context(), h.fence, time.Minute); err != nil {
		h.t.Error(err)
	}
}

// NON-1, NON-7: who is gone is succeeded within seconds, whatever is left of the lease, and is fenced out.
func TestSuccessorOfAHolderThatIsGone(t *testing.T) {
	h := newHolding(t)
	h.attend()()
	f, after, is := h.succeeds(30 * time.Second)
	if !is || f.Token != h.fence.Token+1 || f.Owner != h.next.ID {
		t.Fatalf("%+v, %t", f, is)
	}
	if after < lease.Moment {
		t.Errorf("succeeded after %s, in less than a moment", after)
	}
	if err := h.leases.Renew(t.Context(), h.fence, time.Minute); !lease.Lost(err) {
		t.Errorf("the former holder renewed: %v", err)
	}
	if _, err := h.leases.TakeOver(t.Context(), h.fence, 0); !lease.Lost(err) {
		t.Errorf("the former holder wrote: %v", err)
	}
	if _, err := h.heir.TakeOver(t.Context(), f, 0); err != nil {
		t.Error(err)
	}
	h.await("it is among the signer's events", `SELECT count(*) = 1 FROM keeper.signer_event
		WHERE what = 'holder_gone' AND token = 2`)
}

// A holder whose session is lost again and again opens another one, and is not robbed.
func TestSessionThatIsBegunAgain(t *testing.T) {
	h := newHolding(t)
	h.attend()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	cut := 0
	group.Go(func() {
		conn := connect(t, h.address)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			var n int
			_ = conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_locks
				WHERE locktype = 'advisory' AND objsubid = 1`).Scan(&n)
			cut += n
		}
	})
	h.mustStay()
	cancel()
	group.Wait()
	if cut < 10 {
		t.Errorf("%d sessions were cut", cut)
	}
}

// Only a holder that had a session can be missed: builds of before, and those behind a pooler, keep none.
func TestHolderWithoutASession(t *testing.T) {
	for name, prepare := range map[string]func(*holding){
		"never had one":   func(*holding) {},
		"another owner's": func(h *holding) { h.execute(`UPDATE keeper.signer_lease SET present = gen_random_uuid()`) },
		"renewed since it": func(h *holding) {
			h.attend()()
			h.await("the server has ended the session", `SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
			h.renew()
		},
		"behind a pooler": func(h *holding) {
			h.leases = txstore.NewLeases(txstoretest.Open(h.t, pooled(h.t, h.address), "holder"))
			err := h.leases.Attend(h.t.Context(), h.owner)
			if !errors.Is(err, txstore.ErrPooled) {
				h.t.Errorf("attending behind a pooler: %v", err)
			}
			h.renew()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHolding(t)
			prepare(h)
			h.mustStay()
		})
	}
}

func (h *holding) execute(sql string) {
	h.t.Helper()
	if _, err := connect(h.t, h.address).Exec(h.t.Context(), sql); err != nil {
		h.t.Fatal(err)
	}
}

func (h *holding) renew() {
	h.t.Helper()
	if err := h.leases.Renew(h.t.Context(), h.fence, time.Minute); err != nil {
		h.t.Fatal(err)
	}
}

// Whoever writes between the looks lives, also where its renewal waits for the row that the heir is about to take.
func TestHolderThatWritesMeanwhile(t *testing.T) {
	h := newHolding(t)
	h.attend()()
	began := time.Now()
	for time.Since(began) < 3*lease.Moment {
		h.execute(`UPDATE keeper.signer_lease SET updated_at = clock_timestamp()`)
		if _, err := h.heir.Acquire(t.Context(), h.signer, h.next, time.Minute); !lease.Held(err) {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(lease.Moment / 2)
	}
}

// Of several that wait one succeeds, and the tokens have no gap.
func TestOneSucceeds(t *testing.T) {
	h := newHolding(t)
	h.attend()()
	var group sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		heir, owner := txstore.NewLeases(txstoretest.Open(t, h.address, "heir")), lease.NewOwner("heir")
		group.Go(func() {
			for began := time.Now(); time.Since(began) < 3*lease.Moment; time.Sleep(20 * time.Millisecond) {
				f, err := heir.Acquire(t.Context(), h.signer, owner, time.Minute)
				if err == nil {
					mu.Lock()
					won++
					mu.Unlock()
					if f.Token != 2 {
						t.Errorf("token %d", f.Token)
					}
					return
				}
				if !lease.Held(err) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if won != 1 {
		t.Errorf("%d succeeded", won)
	}
}

// pooled is the database's address through what greets clients with a process of its own, as poolers do.
func pooled(t *testing.T, address string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	server := at.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go greet(client, server)
		}
	}()
	at.Host = listener.Addr().String()
	at.RawQuery = "sslmode=disable"
	return at.String()
}

// greet passes a connection on, with another process id in the greeting.
func greet(client net.Conn, server string) {
	defer func() { _ = client.Close() }()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	go func() { _, _ = io.Copy(up, client) }()
	for head := make([]byte, 5); ; {
		if _, err := io.ReadFull(up, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(up, body); err != nil {
			return
		}
		const backendKey = 'K'
		if head[0] == backendKey {
			body[3]++
		}
		if _, err := client.Write(append(head[:5:5], body...)); err != nil {
			return
		}
	}
}
