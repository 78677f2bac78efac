package config_test

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain drops settings of the surrounding environment, which are meant for keepers and not for tests.
func TestMain(m *testing.M) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "PERPKEEPER_") {
			_ = os.Unsetenv(name) // It can only fail for a name that is none.
		}
	}
	goleak.VerifyTestMain(m)
}
