package signin

import (
	"sync"
	"time"
)

// Tries of a minute: of one address, which may be that of a whole office, and of one name from wherever.
const (
	triesOfAddress = 20
	triesOfName    = 10
	tryWindow      = time.Minute
	mostCounted    = 10_000 // keys that are counted at a time; beyond it nobody new may try before the minute is over
)

// limiter counts tries of a minute by key.
type limiter struct {
	mutex sync.Mutex
	began time.Time
	tries map[string]int
}

// allow counts one try of a key and tells whether it is within the limit.
func (l *limiter) allow(now time.Time, key string, most int) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.tries == nil || now.Sub(l.began) >= tryWindow || now.Before(l.began) {
		l.began, l.tries = now, map[string]int{}
	}
	if _, counted := l.tries[key]; !counted && len(l.tries) >= mostCounted {
		return false
	}
	l.tries[key]++
	return l.tries[key] <= most
}
