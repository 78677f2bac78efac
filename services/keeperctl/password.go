package keeperctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// passwordCost is the work of a new hash, in powers of two: about 0.3 s of a core.
const passwordCost = 12

// A password has at least this many bytes (NIST SP 800-63B asks for 8; 12 is for who holds money), and no more than
// bcrypt looks at.
const (
	shortestPassword = 12
	longestPassword  = 72
)

// printHash prints the bcrypt hash of a password that standard input gives as one line.
func printHash(_ context.Context, s *session, _ []string) error {
	line, err := bufio.NewReader(io.LimitReader(s.in, 1<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the password from standard input: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if len(password) < shortestPassword || len(password) > longestPassword {
		return fmt.Errorf("standard input holds a password of %d bytes (give one line of %d to %d)", len(password),
			shortestPassword, longestPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), passwordCost)
	if err != nil {
		return fmt.Errorf("hashing the password: %w", err)
	}
	return sayf(s.out, "%s\n", hash)
}
