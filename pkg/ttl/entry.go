package ttl

import "time"

// entry is one key of a queue. It is small on purpose: what only failing entries need is apart.
type entry[K comparable] struct {
	key     K
	expiry  time.Duration
	slots   [lists]int32
	try     uint32 // raised when a try begins and when the entry is replaced: reports name it
	state   state
	open    bool // the try may still be reported
	failure *failure
}

// failure is what an entry remembers of its failures.
type failure struct {
	count uint32
	due   time.Duration // of the next try
	err   error
}

// state is the queue an entry stands in.
type state uint8

const (
	gone    state = iota // removed
	waiting              // in the ttl queue
	pending              // expired, and not reported as done
)

// An entry has a slot in one of the two queues, and another one among the failed while it is pending and failed.
const (
	byExpiry = iota
	byRetry
	lists
)

const nowhere = -1

func (e *entry[K]) failed() bool { return e.slots[byRetry] != nowhere }
