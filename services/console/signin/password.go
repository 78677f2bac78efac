package signin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// mostCost bounds what a line of the file can make the process spend: about 4 s of a core.
const mostCost = 16

// wrongDelay is how much later a wrong password is answered than a right one.
const wrongDelay = time.Second

// hashesAtOnce bounds the cores that passwords being checked take.
const hashesAtOnce = 2

// nobody is what the password of an unknown user is compared with, so that the answer takes as long.
var nobody = sync.OnceValue(func() []byte {
	hash, _ := bcrypt.GenerateFromPassword([]byte("nobody"), bcrypt.DefaultCost) // fails for long passwords only
	return hash
})

// checkHash refuses what is no bcrypt hash, and hashes that cost too much to compare with.
func checkHash(hash string) error {
	cost, err := bcrypt.Cost([]byte(hash))
	if err != nil {
		return errors.New("is no bcrypt hash ($2b$12$…; keeperctl password makes one)")
	}
	if cost > mostCost {
		return fmt.Errorf("has the cost %d, and at most %d is taken", cost, mostCost)
	}
	return nil
}

// checks are the passwords being checked: one at a time of an address, [hashesAtOnce] in all.
type checks struct {
	mutex     sync.Mutex
	addresses map[string]*address
	cores     chan struct{}
}

type address struct {
	busy    chan struct{} // full while a password of this address is checked
	waiting int
}

func newChecks() *checks {
	return &checks{addresses: map[string]*address{}, cores: make(chan struct{}, hashesAtOnce)}
}

// compare reports whether a password belongs to a hash. It fails only where the one who asks has gone.
func (c *checks) compare(ctx context.Context, from, hash, password string) (right bool, err error) {
	a := c.enter(from)
	defer c.leave(from, a)
	for _, slot := range []chan struct{}{a.busy, c.cores} {
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil, nil
}

func (c *checks) enter(from string) *address {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	a := c.addresses[from]
	if a == nil {
		a = &address{busy: make(chan struct{}, 1)}
		c.addresses[from] = a
	}
	a.waiting++
	return a
}

func (c *checks) leave(from string, a *address) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if a.waiting--; a.waiting == 0 {
		delete(c.addresses, from)
	}
}
