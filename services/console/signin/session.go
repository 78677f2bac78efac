package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

// Life is how long somebody stays signed in.
const Life = 12 * time.Hour

// mostSessions bounds the memory that sessions take; the oldest makes way.
const mostSessions = 1000

// Session is somebody who is signed in.
type Session struct {
	Name   string
	Role   Role
	Begun  time.Time
	Secret string // what forms of this session carry
	hash   string // of the user's line when the session began
}

// sessions are kept by the SHA-256 of their tokens, which nobody but the browser has.
type sessions struct {
	mutex sync.Mutex
	byKey map[[sha256.Size]byte]Session
}

// Random is 256 bits that nobody can guess, in letters that stand in addresses.
func Random() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (s *sessions) begin(session Session) (token string) {
	token = Random()
	session.Secret = Random()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.byKey == nil {
		s.byKey = map[[sha256.Size]byte]Session{}
	}
	s.sweep(session.Begun)
	s.byKey[sha256.Sum256([]byte(token))] = session
	return token
}

// sweep forgets the sessions that are over, and the oldest where there are too many.
func (s *sessions) sweep(now time.Time) {
	var oldest [sha256.Size]byte
	for key, session := range s.byKey {
		if now.Sub(session.Begun) >= Life {
			delete(s.byKey, key)
			continue
		}
		if first, known := s.byKey[oldest]; !known || session.Begun.Before(first.Begun) {
			oldest = key
		}
	}
	if len(s.byKey) >= mostSessions {
		delete(s.byKey, oldest)
	}
}

func (s *sessions) find(token string, now time.Time) (Session, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	session, known := s.byKey[sha256.Sum256([]byte(token))]
	return session, known && now.Sub(session.Begun) < Life
}

func (s *sessions) end(token string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.byKey, sha256.Sum256([]byte(token)))
}
