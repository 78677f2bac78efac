package signin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The cost of a new hash: the OWASP password storage cheat sheet's first choice for argon2id, 19 MiB and two passes.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	saltBytes = 16
	keyBytes  = 32
)

// A hash of the file may cost more than a new one, up to these: what a line of a file can make the process spend.
const (
	mostMemoryKiB = 1 << 20
	mostPasses    = 16
)

// shortestPassword is how many bytes a password has at least (NIST SP 800-63B asks for 8; 12 is for who holds money).
const shortestPassword = 12

const longestPassword = 1024

var errPasswordLength = fmt.Errorf("the password must have %d to %d bytes", shortestPassword, longestPassword)

// checkPassword refuses passwords that are too short, or so long that hashing them is an attack.
func checkPassword(password string) error {
	if len(password) < shortestPassword || len(password) > longestPassword {
		return errPasswordLength
	}
	return nil
}

// Hash is the PHC string of a password with a fresh salt: $argon2id$v=19$m=…,t=…,p=…$salt$hash.
func Hash(password string) string {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	key := argon2.IDKey([]byte(password), salt, passes, memoryKiB, lanes, keyBytes)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKiB, passes, lanes, encode(salt),
		encode(key))
}

// digest is a parsed PHC string.
type digest struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

var errNoHash = errors.New("is no argon2id hash ($argon2id$v=19$m=…,t=…,p=…$salt$hash)")

func parseHash(text string) (d digest, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return d, errNoHash
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return d, fmt.Errorf("has the version %q of argon2id, and only v=%d is known", parts[2], argon2.Version)
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &d.memory, &d.passes, &d.lanes); err != nil {
		return d, errNoHash
	}
	if d.memory < 8 || d.memory > mostMemoryKiB || d.passes < 1 || d.passes > mostPasses || d.lanes < 1 {
		return d, fmt.Errorf("has the parameters %s, out of bounds", parts[3])
	}
	salt, badSalt := base64.RawStdEncoding.DecodeString(parts[4])
	key, badKey := base64.RawStdEncoding.DecodeString(parts[5])
	if badSalt != nil || badKey != nil || len(salt) < 8 || len(key) < 16 || len(key) > 64 {
		return d, errNoHash
	}
	d.salt, d.key = salt, key
	return d, nil
}

// is reports whether a password has this digest, in a time that does not depend on the answer.
func (d digest) is(password string) bool {
	key := argon2.IDKey([]byte(password), d.salt, d.passes, d.memory, d.lanes, uint32(len(d.key)))
	return subtle.ConstantTimeCompare(key, d.key) == 1
}

// nobody is the digest that the password of an unknown user is compared with, so that the answer takes as long.
var nobody = digest{memory: memoryKiB, passes: passes, lanes: lanes, salt: make([]byte, saltBytes),
	key: make([]byte, keyBytes)}
