package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// version is what is fetched where the machine has no server of its own: the oldest major version the project supports.
const version = embedded.V15

// fetched returns the programs in the cache, filling it from Maven Central when it is empty (about 25 MB, once per
// machine).
func fetched() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "postgres-"+string(version))
	if bin := filepath.Join(home, "bin"); complete(bin) {
		return bin, nil
	}
	if err := fetch(cache, home); err != nil {
		return "",
			fmt.Errorf("this machine has no PostgreSQL server (install one, for instance Debian's postgresql "+
				"package), and fetching one failed: %w", err)
	}
	return filepath.Join(home, "bin"), nil
}

// cacheDir must be readable by the account the server runs as, which root's own cache is not.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/perpkeeper", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for a cache directory: %w", err)
	}
	return filepath.Join(dir, "perpkeeper"), nil
}

// fetch unpacks beside the final place and renames, so that nobody sees half a server.
func fetch(cache, home string) error {
	//nolint:gosec // the server's own account must reach the programs, and they are no secret
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("making the cache: %w", err)
	}
	scratch, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return fmt.Errorf("making room in the cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the next fetch does not mind it
	unpacked := filepath.Join(scratch, "server")
	if err := unpack(scratch, unpacked); err != nil {
		return err
	}
	if err := os.Chmod(unpacked, 0o755); err != nil { //nolint:gosec // see above
		return fmt.Errorf("opening the cache to the server's user: %w", err)
	}
	if err := os.Rename(unpacked, home); err != nil && !complete(filepath.Join(home, "bin")) {
		return fmt.Errorf("moving the server into the cache: %w", err)
	}
	return nil
}

// unpack has the library download, verify and unpack. The library cannot stop there: it goes on to start a server, with
// settings of its own and never as root. It is given a data directory in which no server can start, and whether the
// programs have arrived is what counts.
func unpack(scratch, into string) error {
	data := filepath.Join(scratch, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		return fmt.Errorf("making a data directory: %w", err)
	}
	library := embedded.NewDatabase(embedded.DefaultConfig().Version(version).CachePath(scratch).
		RuntimePath(filepath.Join(scratch, "runtime")).
		BinariesPath(into).DataPath(data).Logger(io.Discard))
	started := library.Start()
	if started == nil {
		return errors.Join(errors.New("a server started in a directory without data"), library.Stop())
	}
	if !complete(filepath.Join(into, "bin")) {
		return started
	}
	return nil
}
